/** Checks every view with axe-core: no serious violations, on a laptop and a phone, light and dark. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE } from "./parts/app.ts";
import { Conversation, Gate } from "./parts/conversation.ts";

const { server, open } = browserSuite();
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The serious violations of what the page shows, in words. */
async function violations({ page }: App): Promise<string[]> {
  await page.evaluate(AXE);
  const results = await page.evaluate(() => {
    const { axe } = window as unknown as { axe: { run(): Promise<AxeResults> } };
    return axe.run();
  });
  return results.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")} ${failureSummary}`),
    );
}

const screens = [
  ["a laptop, light", { ...DESKTOP, colorScheme: "light" }],
  ["a laptop, dark", { ...DESKTOP, colorScheme: "dark" }],
  ["a phone, light", { ...PHONE, colorScheme: "light" }],
  ["a phone, dark", { ...PHONE, colorScheme: "dark" }],
] as const;

test.each(screens)("R54: on %s, no view has a serious problem for people with disabilities", async (_, screen) => {
  const text =
    "# Title\\n\\nA [link](https://example.org), `code` and a list:\\n\\n- one\\n- two\\n\\n```js\\nlet a = 1; // b\\n```";
  const id = await server.agent(
    "chat",
    `think Hm.\ntool ls -l\nedit ${server.folder}/file\nsay ${text}\nplan done:a|b`,
  );
  await server.shell("shell");
  const app = await open({ screen: { ...screen, reducedMotion: "reduce" } });
  const { page } = app;
  const check = async (view: string) => {
    await app.waitForPaint();
    expect(await violations(app), view).toEqual([]);
  };
  await page.waitForSelector("[data-session]");
  await check("the board");
  await page.click('button:has-text("New session")');
  await app.byTestId("kind-agent").click();
  await app.byTestId("agent-fake").waitFor();
  await check("a new conversation");
  await app.byTestId("kind-terminal").click();
  await check("a new terminal");
  await page.keyboard.press("Escape");

  const chat = await Conversation.visit(app, id);
  await chat.ends(1);
  await check("a conversation");
  const gate = new Gate(server);
  await chat.send(`ask w Write it\n${gate.instructions}`);
  await page.waitForSelector('[data-testid="approval"]:not([aria-disabled="true"])');
  await chat.send("say Later.");
  await app.byTestId("waiting").waitFor();
  await check("an approval and a prompt that waits");
  await page.keyboard.press("Control+f");
  await app.byTestId("find").fill("one");
  await check("finding");
  await page.goto(`${app.base}/#/approvals`);
  await page.waitForSelector('[data-testid="inbox"] [data-testid="approval"]:not([aria-disabled="true"])');
  await check("all approvals");
  await page.goto(`${app.base}/#/settings`);
  await page.waitForSelector("text=These settings apply to this device only");
  await check("the settings");
  gate.open();
});
