/** Tests forms: the new session dialog, the settings and the text field accept any input and lose none. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, browserSuite, PHONE } from "./parts/app.ts";

const { server, open } = browserSuite();

async function startSession({ page }: App, command: string, folder = ""): Promise<void> {
  await page.click("text=New session >> nth=0");
  await page.getByLabel("Command").fill(command);
  await page.getByTestId("folder").fill(folder);
  await page.click('dialog button:has-text("Start session")');
}

test("R54: a session starts with a long command in any script, in a directory of any name", async () => {
  const app = await open();
  const folder = join(server.folder, "日本");
  mkdirSync(folder);
  await startSession(app, `echo "✓ $(basename "$PWD")"; : ${"a long line ".repeat(40)}; exec cat`, folder);
  await app.waitForState("open");
  await app.prints("✓ 日本");
});

/** An init script that drops the first response to a request for a new session. */
function loseResponse(): void {
  const real = window.fetch;
  let lost = false;
  window.fetch = async (...args) => {
    const response = await real(...args);
    if (lost || args[1]?.method !== "POST" || !response.url.endsWith("/v1/sessions")) return response;
    lost = true;
    throw new TypeError("connection lost");
  };
}

test("R54: a retry after a lost response starts no second session, but a changed command does", async () => {
  const app = await open({ initScript: loseResponse });
  const { page } = app;
  await startSession(app, "echo first; exec cat");
  await page.waitForSelector('dialog [role="alert"]:has-text("connection lost")');
  await page.click('dialog button:has-text("Start session")');
  await app.waitForState("open");
  await app.prints("first");
  const sessions = async () =>
    (JSON.parse(await server.bowline("ls", "--json")) as { sessions: unknown[] }).sessions.length;
  expect(await sessions()).toBe(1);
  await page.reload();
  await app.waitForState("open");
  await page.click('[aria-label="Back to the board"]');
  await startSession(app, "echo another; exec cat");
  await page.waitForSelector('dialog [role="alert"]');
  await page.getByLabel("Command").fill("echo other; exec cat");
  await page.click('dialog button:has-text("Start session")');
  await app.prints("other");
  expect(await sessions()).toBe(3);
});

test.each(["", "-5", "1.5", "1e30"])("R54: scrollback of %j lines breaks no terminal", async (lines) => {
  const app = await open();
  const { page } = app;
  await page.goto(`${app.base}/#/settings`);
  const field = page.locator('label:has-text("Scrollback") input');
  await field.fill(lines);
  await field.blur();
  expect(Number(await field.inputValue())).toBe({ "": 5000, "-5": 0, "1.5": 2, "1e30": 100_000 }[lines]);
  await app.visit(await server.shell());
  await app.prints("ready>");
});

test("R54: a page requests and keeps as many lines as the settings say, and after a reload has those that the session keeps", async () => {
  const app = await open();
  const { page } = app;
  const requested: number[] = [];
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const lines = /"scrollback":(\d+)/.exec(String(payload))?.[1];
      if (lines !== undefined) requested.push(Number(lines));
    }),
  );
  const setScrollback = async (lines: number) => {
    await page.goto(`${app.base}/#/settings`);
    const field = page.locator('label:has-text("Scrollback") input');
    await field.fill(String(lines));
    await field.blur();
  };
  const linesAbove = async (last: string) => {
    const { text, rows } = await app.prints(last);
    return text.split("\n").length - rows;
  };
  await page.goto(`${app.base}/#/settings`);
  expect(await page.locator('label:has-text("Scrollback")').innerText()).toContain(
    "After a reload, limited to what the session keeps (1,000 by default)",
  );
  const id = await server.new("sh", "-c", "read x; seq 3000; printf all; exec cat");
  await app.visit(id);
  await app.type("\r");
  expect(await linesAbove("all")).toBeGreaterThan(2900);
  await page.reload();
  expect(await linesAbove("all")).toBe(1000);
  await setScrollback(200);
  await app.visit(id);
  expect(await linesAbove("all")).toBe(200);
  expect(requested).toEqual([5000, 5000, 200]);
});

test("R54: selecting text past the edge of a dialog does not close it, but a click outside does", async () => {
  const app = await open();
  const { page } = app;
  await page.click("text=New session >> nth=0");
  const command = page.getByLabel("Command");
  await command.fill("make test");
  const field = (await command.boundingBox())!;
  await page.mouse.move(field.x + 60, field.y + 10);
  await page.mouse.down();
  await page.mouse.move(5, field.y + 10, { steps: 4 });
  await page.mouse.up();
  expect(await command.inputValue()).toBe("make test");
  await page.mouse.click(5, field.y + 10);
  await page.waitForSelector("dialog", { state: "detached" });
});

test("R54: the text field keeps its content when it is closed", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  await app.visit(await server.shell());
  await page.tap('[aria-label="Text field"]');
  await page.fill('textarea[aria-label="Text"]', "half a thought");
  await page.tap('[aria-label="Close text field"]');
  await app.byTestId("composer").waitFor({ state: "detached" });
  await page.tap('[aria-label="Text field"]');
  expect(await page.inputValue('textarea[aria-label="Text"]')).toBe("half a thought");
});

test("R54: Enter alone does not end a session, and the page of a forgotten session returns to the board", async () => {
  const app = await open();
  const { page } = app;
  const id = await server.shell();
  await app.visit(id);
  await app.choose("End");
  await page.waitForSelector("dialog");
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog", { state: "detached" });
  expect(JSON.parse(await server.bowline("ls", "--json")).sessions).toMatchObject([{ id, state: "running" }]);
  await app.choose("End");
  await page.click('dialog button:text-is("End and forget")');
  await page.waitForSelector("text=No sessions yet");
  expect(new URL(page.url()).hash).toBe("#/");
});
