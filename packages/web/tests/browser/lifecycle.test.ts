/** Tests pages that are frozen, hidden, or in the back/forward cache, in a Chromium that really does this. */
import { expect, test } from "vitest";
import { browserSuite, stopAfterTest } from "./parts/app.ts";
import { Chromium, type Tab } from "./parts/chromium.ts";
import { controlClock } from "./parts/clock.ts";
import { Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";

const { server } = browserSuite();

const OPEN = `document.querySelector('[data-testid="connection"][data-state="open"]')`;

/** Records the page's lifecycle events, counts ticks while it is awake, and installs the test clock. */
const WATCH = `
  (${String(controlClock)})();
  window.events = [];
  window.ticks = 0;
  setInterval(() => window.ticks++, 5);
  const record = (name) => window.events.push({ name, ticks: window.ticks });
  for (const name of ["freeze", "resume"]) document.addEventListener(name, () => record(name), true);
  document.addEventListener("visibilitychange", () => record(document.visibilityState), true);
  addEventListener("pageshow", (event) => record(event.persisted ? "restored" : "loaded"), true);
  window.sockets = [];
  const Real = WebSocket;
  window.WebSocket = class extends Real {
    constructor(...args) { super(...args); if (this.url.includes("/attach")) window.sockets.push(this); }
  };
`;

interface PageEvent {
  readonly name: string;
  readonly ticks: number;
}

const eventsOf = (tab: Tab) => tab.value<PageEvent[]>("window.events");
const eventsNamed = async (tab: Tab, name: string) => (await eventsOf(tab)).filter((event) => event.name === name);

/** Opens a tab, logs in, and opens a session. */
async function openSession(chromium: Chromium, base: string, id: string): Promise<Tab> {
  const tab = await chromium.tab(await server.loginLink(base), WATCH);
  await tab.waitFor("the board", `document.querySelector('[data-session="${id}"]')`);
  await tab.value(`location.hash = "#/s/${id}"`);
  await tab.waitFor("the session is attached", OPEN);
  await tab.prints("ready>");
  return tab;
}

/** Makes the session print something that the page has not received. */
async function printWord(id: string, word: string): Promise<void> {
  await server.bowline("send", id, "--enter", `echo ${word} $((2 * 21))`);
  await until("the session has printed", async () => (await server.screen(id)).includes(`${word} 42`));
}

async function expectOnce(tab: Tab, word: string): Promise<void> {
  await tab.prints(`${word} 42`);
  expect((await tab.text()).split(`${word} 42`)).toHaveLength(2);
}

test("R11, R12: a frozen page resumes exactly, although its sockets died silently", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const chromium = stopAfterTest(await Chromium.start());
  const id = await server.shell();
  const tab = await openSession(chromium, wire.url, id);
  // The order on a phone: another app comes to the front, then the page is frozen.
  await (await chromium.tab("about:blank")).show();
  await tab.waitFor("the page is hidden", `document.visibilityState === "hidden"`);
  await tab.send("Page.setWebLifecycleState", { state: "frozen" });
  const [frozen] = await until("the page is frozen", async () => {
    const found = await eventsNamed(tab, "freeze");
    return found.length > 0 ? found : undefined;
  });
  wire.stall();
  for (const word of ["one", "two", "three"]) await printWord(id, word);
  // At most the current tick completed after the freeze.
  const ticks = await tab.value<number>("window.ticks");
  expect(ticks - frozen!.ticks).toBeLessThanOrEqual(1);
  expect(await tab.value("window.sockets.map((socket) => socket.readyState)")).toEqual([1]);
  const dials = wire.attaches;
  // Stop the clock until all wake events have arrived, then let the probe time out once.
  await tab.value("clock.stop()");
  await tab.send("Page.setWebLifecycleState", { state: "active" });
  await tab.show();
  await tab.waitFor(
    "the page is awake",
    `["resume", "visible"].every((name) => events.at(-1).name === name || events.at(-2).name === name)`,
  );
  await tab.value("clock.advance(2_000)");
  for (const word of ["one", "two", "three"]) await expectOnce(tab, word);
  expect(await eventsNamed(tab, "resume")).toHaveLength(1);
  expect(wire.attaches).toBe(dials + 1);
  await tab.waitFor("the session is attached", OPEN);
});

test("R11: a hidden page reconnects at most once a minute, and at once when it is shown", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const chromium = stopAfterTest(await Chromium.start());
  const id = await server.shell();
  const tab = await openSession(chromium, wire.url, id);
  const other = await chromium.tab("about:blank");
  await other.show();
  await tab.waitFor("the page is hidden", `document.visibilityState === "hidden"`);
  const dials = wire.attaches;
  wire.cut();
  await tab.waitFor(
    "the connection is lost",
    `document.querySelector('[data-testid="connection"][data-state="reconnecting"]')`,
  );
  await printWord(id, "unseen");
  // A visible page would have reconnected several times by now.
  const cut = await tab.value<number>("performance.now()");
  await until("two seconds in the page", async () => (await tab.value<number>("performance.now()")) > cut + 2000);
  expect(wire.attaches).toBe(dials);
  // An hour later the page is shown. The clock is stopped, so that no reply can be late.
  await tab.value("clock.stop()");
  await tab.value("clock.sleep(3600_000)");
  await tab.show();
  await expectOnce(tab, "unseen");
  expect(wire.attaches).toBe(dials + 1);
  expect((await eventsOf(tab)).map(({ name }) => name).slice(-2)).toEqual(["hidden", "visible"]);
});

test("R11, R13: after an hour hidden with a connection that only seems open, the page connects once and misses nothing", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const chromium = stopAfterTest(await Chromium.start());
  const id = await server.shell();
  const tab = await openSession(chromium, wire.url, id);
  const other = await chromium.tab("about:blank");
  await other.show();
  await tab.waitFor("the page is hidden", `document.visibilityState === "hidden"`);
  wire.stall();
  await printWord(id, "asleep");
  // The clock is stopped, so that no reply can be late.
  await tab.value("clock.stop()");
  await tab.value("clock.sleep(3600_000)");
  const dials = wire.attaches;
  await tab.show();
  // All wake events arrive at once.
  await tab.value(
    `for (const wake of ["online", "pageshow"]) dispatchEvent(new PageTransitionEvent(wake, { persisted: true }))`,
  );
  await expectOnce(tab, "asleep");
  expect(wire.attaches).toBe(dials + 1);
});

test("R11: a page in the back/forward cache resumes where it was", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const chromium = stopAfterTest(await Chromium.start());
  const id = await server.shell();
  const tab = await openSession(chromium, wire.url, id);
  await tab.value("window.mark = 'the same page'");
  await tab.send("Page.navigate", { url: `${server.url}/healthz` });
  await tab.waitFor("another page", `location.pathname === "/healthz"`);
  await printWord(id, "away");
  await tab.value("history.back()");
  await expectOnce(tab, "away");
  // It was restored from the back/forward cache, not loaded again.
  expect(await tab.value("window.mark"), "a browser that is short of memory does not use its back/forward cache").toBe(
    "the same page",
  );
  expect((await eventsOf(tab)).map(({ name }) => name)).toContain("restored");
  await tab.waitFor("the session is attached", OPEN);
});
