/** A conversation of ten thousand events: what is loaded, what is in the page, and that all of it can be reached. */
import { expect, test } from "vitest";
import { browserSuite } from "./parts/app.ts";
import { Conversation } from "./parts/conversation.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** The tool calls of the long conversation; each has three events. */
const TOOLS = 3400;

test("R40: a long conversation opens at its end, shows a part, pages upwards in place, and is searched as a whole", async () => {
  const tools = Array.from({ length: TOOLS }, (_, i) => `tool step ${i}`).join("\n");
  const id = await server.agent("long", `${tools}\nsay The end.`);
  await until("the run has ended", async () => (await server.bowline("log", id)).includes("The end."));
  const app = await open();
  const pages: string[] = [];
  app.page.on("request", (request) => {
    if (/\/events\?|\/events$/.test(request.url()) && request.method() === "GET") pages.push(request.url());
  });
  const chat = await Conversation.visit(app, id);
  await chat.shows("The end.");
  const loaded = pages.filter((url) => url.includes(id)).length;
  expect(loaded, "the last page, and at most one before it").toBeLessThanOrEqual(2);
  const count = () => chat.items().count();
  expect(await count()).toBeLessThanOrEqual(260);

  // Scrolling up loads older events; what the reader sees stays where it is.
  const view = chat.app.byTestId("transcript");
  const before = await chat.items().first().getAttribute("data-key");
  await view.evaluate((view) => (view.scrollTop = 1500));
  await chat.app.waitForPaint();
  const { key, top } = await view.evaluate((view) => {
    // Near enough to the beginning that more is loaded, once the browser reports it.
    view.scrollTop = 600;
    const top = view.getBoundingClientRect().top;
    const first = [...view.querySelectorAll("ol > li")].find((item) => item.getBoundingClientRect().bottom > top)!;
    return { key: first.getAttribute("data-key")!, top: first.getBoundingClientRect().top - top };
  });
  await until(
    "older items are in the page",
    async () => (await chat.items().first().getAttribute("data-key")) !== before,
  );
  await chat.app.waitForPaint();
  const now = await view.evaluate(
    (view, key) =>
      view.querySelector(`[data-key="${key}"]`)!.getBoundingClientRect().top - view.getBoundingClientRect().top,
    key,
  );
  expect(Math.abs(now - top)).toBeLessThan(4);
  expect(await count()).toBeLessThanOrEqual(260);

  // What is not loaded is found, and shown.
  const find = app.byTestId("find");
  const result = () => app.byTestId("find-result").innerText();
  await app.page.keyboard.press("Control+f");
  await find.fill("Step 12");
  const matches = Array.from({ length: TOOLS }, (_, i) => `step ${i}`).filter((title) => title.includes("step 12"));
  // The prompt contains it, too.
  await until("everything was searched", async () => (await result()) === `1 of ${matches.length + 1}`, result);
  // The place before the first one is the oldest.
  await find.press("Shift+Enter");
  await find.press("Enter");
  await find.press("Shift+Enter");
  await find.press("Shift+Enter");
  await until("the oldest tool is shown", async () => /step 12$/m.test(await chat.text()));
  expect(await count()).toBeLessThanOrEqual(260);
  await app.page.keyboard.press("Escape");
  await app.byTestId("to-latest").click();
  await chat.shows("The end.");
});
