/** Conversations with an agent, on a laptop and on a phone: what a user does all day. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { browserSuite, DESKTOP, PHONE } from "./parts/app.ts";
import { Conversation, Gate } from "./parts/conversation.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** The smallest PNG: one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const fits = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

describe.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("on %s", (_, screen) => {
  test("R54: a prompt is sent, its answer streams in, and the run ends", async () => {
    const id = await server.agent();
    const chat = await Conversation.visit(await open({ screen }), id);
    await chat.ends(1);
    const gate = new Gate(server);
    await chat.send(`say The first half,\n${gate.instructions}\nsay  and the second.\ntool ls -l`);
    await gate.reached();
    await until("the run can be stopped", async () => (await chat.status()).includes("Stop"));
    await until("the first half is shown", async () => (await chat.items("text").count()) === 2);
    expect(await chat.app.byTestId("composer").inputValue()).toBe("");
    gate.open();
    await chat.ends(2);
    expect(await chat.items("text").last().innerText()).toBe("The first half, and the second.");
    await chat.isReady();
    expect(await chat.items("tool").count()).toBe(1);
    expect(await chat.items("prompt").count()).toBe(2);
    expect(await chat.app.byTestId("message").count()).toBe(0);
    expect(await fits(chat.page)).toBe(true);
  });

  test("R36: an approval is answered on one device while another one watches", async () => {
    const id = await server.agent();
    const watching = await Conversation.visit(await open({ screen: DESKTOP }), id);
    const answering = await Conversation.visit(await open({ screen }), id);
    await answering.send("ask w Run the tests\nsay Done.");
    for (const { app } of [watching, answering]) await app.byTestId("approval").waitFor();
    await answering.app.byTestId("approval").locator('[data-option="once"]').click();
    await answering.shows("w: once");
    for (const chat of [watching, answering]) {
      await chat.ends(2);
      expect(await chat.app.byTestId("approval").count()).toBe(0);
      expect(await chat.app.byTestId("closed-approval").innerText()).toMatch(/^Allowed by/);
    }
  });

  test("R42: a run is stopped", async () => {
    const id = await server.agent();
    const chat = await Conversation.visit(await open({ screen }), id);
    const gate = new Gate(server);
    await chat.send(`say Working\n${gate.instructions}`);
    await gate.reached();
    await chat.app.byTestId("stop").click();
    await chat.ends(2);
    expect(await chat.items("end").last().innerText()).toContain("Stopped");
    await chat.isReady();
  });

  test("R59: prompts wait behind a run, and can be withdrawn and edited", async () => {
    const id = await server.agent();
    const chat = await Conversation.visit(await open({ screen }), id);
    await chat.ends(1);
    const gate = new Gate(server);
    await chat.send(`${gate.instructions}\nsay First.`);
    await gate.reached();
    await chat.send("say Second.");
    await chat.send("say Third.");
    const waiting = chat.app.byTestId("waiting");
    await until("two prompts wait", async () => (await waiting.count()) === 2);
    await waiting.filter({ hasText: "Second." }).locator('[data-testid="withdraw"]').click();
    await until("one prompt waits", async () => (await waiting.count()) === 1);
    await waiting.locator('[data-testid="edit"]').click();
    await until(
      "the prompt is in the composer",
      async () => (await chat.app.byTestId("composer").inputValue()) === "say Third.",
    );
    await chat.send("say Fourth.");
    gate.open();
    await chat.shows("Fourth.");
    await chat.isReady();
    const said = await chat.page.locator('[data-testid="text"]').allInnerTexts();
    expect(said.map((text) => text.trim())).toEqual(["Hello.", "First.", "Fourth."]);
  });

  test("R54: an image is attached, reaches the agent, and is shown", async () => {
    const id = await server.agent();
    const chat = await Conversation.visit(await open({ screen }), id);
    await chat.page.setInputFiles('input[type="file"]', { name: "dot.png", mimeType: "image/png", buffer: PIXEL });
    await chat.send("echo-blocks");
    await chat.shows("image:image/png");
    const picture = chat.page.locator('img[data-testid="attachment"]');
    await until(
      "the picture is shown",
      async () => (await picture.evaluate((img: HTMLImageElement) => img.naturalWidth)) === 1,
    );
  });

  test("R54: a slash command is completed from the agent's list", async () => {
    const id = await server.agent(undefined, "commands compact|review");
    const chat = await Conversation.visit(await open({ screen }), id);
    await chat.ends(1);
    await chat.app.byTestId("composer").pressSequentially("/rev");
    const list = chat.app.byTestId("completion");
    await list.waitFor();
    expect(await list.locator('[role="option"]').allInnerTexts()).toEqual([expect.stringContaining("/review")]);
    await list.locator('[role="option"]').click();
    expect(await chat.app.byTestId("composer").inputValue()).toBe("/review ");
  });

  test("R54: the mode is changed", async () => {
    const id = await server.agent();
    const chat = await Conversation.visit(await open({ screen }), id);
    await chat.ends(1);
    await chat.app.byTestId("mode").click();
    await chat.page.locator('[role="menuitemradio"]:has-text("Plan"), [role="option"]:has-text("Plan")').click();
    await chat.shows("Mode set to plan");
    await chat.send("echo-mode");
    await chat.shows("mode=plan");
  });

  test("R54: an ended conversation is resumed by sending to it", async () => {
    const id = await server.agent();
    const chat = await Conversation.visit(await open({ screen, networkErrors: true }), id);
    await chat.ends(1);
    await server.bowline("kill", "--keep", id);
    await chat.app.byTestId("exit").waitFor();
    await chat.send("say Back again.");
    await chat.ends(2);
    await chat.isReady();
    expect(await chat.items("text").last().innerText()).toBe("Back again.");
    expect(await chat.app.byTestId("message").count()).toBe(0);
  });
});
