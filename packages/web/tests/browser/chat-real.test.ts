/** A conversation with a real agent program, from the dialog that starts it to its resumption. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configureClaude } from "./parts/agents.ts";
import { browserSuite, PHONE, stopAfterTest } from "./parts/app.ts";
import { Conversation } from "./parts/conversation.ts";
import { TestServer } from "./parts/server.ts";
import { until } from "./parts/until.ts";

const { open } = browserSuite();

test("R32, R54: Claude Code is started, asked, allowed to run a command, and resumed from a phone", async () => {
  const configuration = await configureClaude();
  const server = stopAfterTest(await TestServer.start());
  appendFileSync(join(server.folder, "config.toml"), configuration);
  await server.killGateway();
  await server.startGateway();
  const app = await open({ server, screen: PHONE, networkErrors: true });
  const { page } = app;
  await page.click('button:has-text("New session")');
  await app.byTestId("kind-agent").click();
  await app.byTestId("agent-claude").click();
  await app.byTestId("first-prompt").fill("[[say:Good morning]]");
  await page.click('button:has-text("Start session")');
  await app.waitForState("open");
  const id = decodeURIComponent((await page.evaluate(() => location.hash)).replace("#/s/", ""));
  const chat = await Conversation.visit(app, id);
  await chat.shows("Good morning");
  await chat.ends(1);

  await chat.send("[[run:touch made-by-claude]]");
  const card = app.byTestId("approval");
  await card.waitFor();
  expect(await card.innerText()).toContain("touch made-by-claude");
  const allow = card.locator('[data-testid="option"]').first();
  await until("the command was allowed", async () => {
    if ((await card.count()) > 0) await allow.click({ timeout: 1000 }).catch(() => {});
    return (await app.byTestId("closed-approval").count()) > 0;
  });
  await chat.shows("Done. Tool said:");
  await chat.ends(2);

  await server.bowline("kill", "--keep", id);
  await app.byTestId("exit").waitFor();
  await chat.send("[[say:Still here]]");
  await chat.ends(3);
  await chat.shows("Still here");
  await chat.isReady();
});
