/** Conversations over bad networks, killed gateways and killed pages: every prompt runs once, and the transcript is whole. */
import { expect, test } from "vitest";
import { browserSuite, PHONE, stopAfterTest } from "./parts/app.ts";
import { Chromium } from "./parts/chromium.ts";
import { controlClock } from "./parts/clock.ts";
import { Conversation, Gate, journalOf, promptsOf } from "./parts/conversation.ts";
import { Wire } from "./parts/proxy.ts";
import { OTHER_NAME } from "./parts/setup.ts";
import { TestServer } from "./parts/server.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** The states that a message went through, in words. */
const messageState = (chat: Conversation) => chat.app.byTestId("message").getAttribute("data-state");

test("R41: a prompt that is written in airplane mode is delivered once, after it", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const id = await server.agent();
  // By another name than localhost, which can be reached without a network.
  const base = wire.url.replace("127.0.0.1", OTHER_NAME);
  const chat = await Conversation.visit(await open({ screen: PHONE, base, networkErrors: true }), id);
  await chat.ends(1);
  await chat.app.context.setOffline(true);
  wire.refusing = true;
  wire.cut();
  await chat.send("say From the plane.");
  await until("it waits for the network", async () => (await messageState(chat)) === "waiting");
  expect(await chat.app.byTestId("message").innerText()).toContain("no network");
  expect(await chat.app.byTestId("composer").inputValue()).toBe("");
  wire.refusing = false;
  await chat.app.context.setOffline(false);
  await chat.shows("From the plane.");
  await chat.ends(2);
  expect(await promptsOf(server, id)).toEqual(["say Hello.", "say From the plane."]);
  expect(await chat.app.byTestId("message").count()).toBe(0);
});

test.each(["before it arrived", "after it arrived"])(
  "R41: the tab is killed right after a send, %s: the prompt runs once when the tab is opened again",
  async (when) => {
    const id = await server.agent();
    const app = await open({ networkErrors: true });
    const chat = await Conversation.visit(app, id);
    await chat.ends(1);
    await app.page.route("**/commands", async (route) => {
      if (when === "after it arrived") await route.fetch();
      await route.abort();
    });
    await chat.send("say Once.");
    if (when === "after it arrived") {
      await until("the session has it", async () => (await promptsOf(server, id)).length === 2);
    } else {
      await until("it is retried", async () => (await messageState(chat)) === "retrying");
    }
    await app.page.close({ runBeforeUnload: false });
    const again = await Conversation.visit(await open({ sharing: app }), id);
    await again.shows("Once.");
    await again.ends(2);
    expect(await again.app.byTestId("composer").inputValue()).toBe("");
    await until("nothing is left to send", async () => (await again.app.byTestId("message").count()) === 0);
    expect(await promptsOf(server, id)).toEqual(["say Hello.", "say Once."]);
  },
);

test("R37: a gateway that is killed in mid-stream and in mid-POST loses and repeats nothing", async () => {
  const own = stopAfterTest(await TestServer.start());
  const id = await own.agent();
  const chat = await Conversation.visit(await open({ server: own, networkErrors: true }), id);
  await chat.ends(1);
  const gate = new Gate(own);
  await chat.send(`chunks 200 5\n${gate.instructions}\nchunks 200 5\nsay \\nEnd.`);
  await gate.reached();
  await own.killGateway();
  gate.open();
  let killed = false;
  await chat.page.route("**/commands", async (route) => {
    // The request is on its way when the gateway dies.
    if (!killed) await own.killGateway();
    killed = true;
    await route.continue();
  });
  await own.startGateway();
  await chat.shows("End.");
  await chat.send("say After it.");
  await until("the gateway was killed", () => killed);
  await own.startGateway();
  await chat.shows("After it.");
  await chat.ends(3);
  const said = (await journalOf(own, id)).filter(({ type }) => type === "text").map(({ delta }) => String(delta));
  const digits = (text: string) => text.replace(/[^0-9]/g, "");
  expect(digits(await chat.page.locator('[data-testid="text"]').nth(1).innerText())).toBe(digits(said.join("")));
  expect((await promptsOf(own, id)).length).toBe(3);
});

test("R38: storage that throws: prompts are sent all the same, and a page says what it cannot keep", async () => {
  const id = await server.agent();
  const app = await open({
    networkErrors: true,
    initScript: () => {
      const refuse = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
      for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { get: refuse });
    },
  });
  const chat = await Conversation.visit(app, id);
  await chat.ends(1);
  let refusing = true;
  await app.page.route("**/commands", (route) => (refusing ? route.abort() : route.continue()));
  await chat.send("say Without storage.");
  await until("the message says so", async () => /lost/i.test(await app.byTestId("message").innerText()));
  refusing = false;
  await chat.ends(2);
  expect(await promptsOf(server, id)).toEqual(["say Hello.", "say Without storage."]);
});

test("R38: two tabs with one storage both work, and no prompt is sent twice", async () => {
  const id = await server.agent();
  const first = await Conversation.visit(await open(), id);
  const second = await Conversation.visit(await open({ sharing: first.app }), id);
  await first.ends(1);
  await first.send("say From the first.");
  await second.send("say From the second.");
  for (const chat of [first, second]) {
    await chat.ends(3);
    await chat.isReady();
    expect(await chat.app.byTestId("message").count()).toBe(0);
  }
  expect((await promptsOf(server, id)).sort()).toEqual(["say From the first.", "say From the second.", "say Hello."]);
});

test("R40: a page that was frozen for five minutes during a run shows all of it when it is shown again", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const chromium = stopAfterTest(await Chromium.start());
  const id = await server.agent();
  const tab = await chromium.tab(await server.loginLink(wire.url), `(${String(controlClock)})();`);
  await tab.waitFor("the board", `document.querySelector('[data-session="${id}"]')`);
  await tab.value(`location.hash = "#/s/${id}"`);
  const text = `document.querySelector('[data-testid="transcript"]')?.innerText`;
  await tab.waitFor("the conversation", `${text}?.includes("Hello.")`);
  const gate = new Gate(server);
  await server.bowline("send", id, "--", `say Before.\n${gate.instructions}\ntool ls\nchunks 300 3\nsay \nAfter.`);
  await gate.reached();
  await tab.waitFor("the first part", `${text}?.includes("Before.")`);
  await (await chromium.tab("about:blank")).show();
  await tab.waitFor("the page is hidden", `document.visibilityState === "hidden"`);
  await tab.send("Page.setWebLifecycleState", { state: "frozen" });
  // The phone's network goes without a word.
  wire.stall();
  gate.open();
  await until("the run has ended", async () => (await journalOf(server, id)).at(-1)?.["type"] === "complete");
  await tab.value("clock.stop()");
  await tab.value("clock.sleep(300_000)");
  await tab.send("Page.setWebLifecycleState", { state: "active" });
  await tab.show();
  // At most one second of the page's time passes.
  await tab.value("clock.advance(1_000)");
  await tab.waitFor("the whole run", `document.querySelectorAll('[data-kind="end"]').length === 2`);
  const digits = Array.from({ length: 300 }, (_, i) => String(i % 10).repeat(3)).join("");
  const shown = await tab.value<string>(`${text}.replace(/[^0-9]/g, "")`);
  expect(shown).toContain(digits);
});
