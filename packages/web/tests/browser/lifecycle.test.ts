/** Pages that sleep: frozen, hidden, kept for the way back. In a Chromium where pages really do. */
import { expect, test } from "vitest";
import { afterwards, stage } from "./parts/app.ts";
import { Chromium, type Tab } from "./parts/chromium.ts";
import { holdClock } from "./parts/clock.ts";
import { Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";

const { world } = stage();

const OPEN = `document.querySelector('[data-testid="connection"][data-state="open"]')`;

/** Notes what happens to the page, and counts as long as it is awake; its time is the test's. */
const WATCH = `
  (${String(holdClock)})();
  window.told = [];
  window.ticks = 0;
  setInterval(() => window.ticks++, 5);
  const tell = (name) => window.told.push({ name, ticks: window.ticks });
  for (const name of ["freeze", "resume"]) document.addEventListener(name, () => tell(name), true);
  document.addEventListener("visibilitychange", () => tell(document.visibilityState), true);
  addEventListener("pageshow", (event) => tell(event.persisted ? "restored" : "loaded"), true);
  window.sockets = [];
  const Real = WebSocket;
  window.WebSocket = class extends Real {
    constructor(...args) { super(...args); if (this.url.includes("/attach")) window.sockets.push(this); }
  };
`;

interface Told {
  readonly name: string;
  readonly ticks: number;
}

const told = (tab: Tab) => tab.value<Told[]>("window.told");
const tellsOf = async (tab: Tab, name: string) => (await told(tab)).filter((one) => one.name === name);

/** A tab in which somebody is logged in and looks at a session. */
async function lookAt(chromium: Chromium, base: string, id: string): Promise<Tab> {
  const tab = await chromium.tab(await world.loginLink(base), WATCH);
  await tab.sees("the board", `document.querySelector('[data-session="${id}"]')`);
  await tab.value(`location.hash = "#/s/${id}"`);
  await tab.sees("the session", OPEN);
  await tab.prints("ready>");
  return tab;
}

/** The session prints something that the page has not seen. */
async function print(id: string, word: string): Promise<void> {
  await world.bowline("send", id, "--enter", `echo ${word} $((2 * 21))`);
  await until("the session printed", async () => (await world.screen(id)).includes(`${word} 42`));
}

async function expectOnce(tab: Tab, word: string): Promise<void> {
  await tab.prints(`${word} 42`);
  expect((await tab.text()).split(`${word} 42`)).toHaveLength(2);
}

test("R11, R12: a frozen page comes back to exactly what it missed, though its sockets died without a word", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const chromium = afterwards(await Chromium.start());
  const id = await world.shell();
  const tab = await lookAt(chromium, wire.url, id);
  // A phone does it in this order: another app in front, then the freeze.
  await (await chromium.tab("about:blank")).show();
  await tab.sees("that it is hidden", `document.visibilityState === "hidden"`);
  await tab.send("Page.setWebLifecycleState", { state: "frozen" });
  const [frozen] = await until("the page froze", async () => {
    const tells = await tellsOf(tab, "freeze");
    return tells.length > 0 ? tells : undefined;
  });
  wire.hold();
  for (const word of ["one", "two", "three"]) await print(id, word);
  // It ticked on to the end of the turn at most, and not for as long as all this took.
  const ticks = await tab.value<number>("window.ticks");
  expect(ticks - frozen!.ticks).toBeLessThanOrEqual(1);
  expect(await tab.value("window.sockets.map((socket) => socket.readyState)")).toEqual([1]);
  const dials = wire.attaches;
  // No time passes until it has heard of everything that wakes it; then that of a probe does, once.
  await tab.value("clock.stop()");
  await tab.send("Page.setWebLifecycleState", { state: "active" });
  await tab.show();
  await tab.sees(
    "that it is awake",
    `["resume", "visible"].every((name) => told.at(-1).name === name || told.at(-2).name === name)`,
  );
  await tab.value("clock.advance(2_000)");
  for (const word of ["one", "two", "three"]) await expectOnce(tab, word);
  expect(await tellsOf(tab, "resume")).toHaveLength(1);
  expect(wire.attaches).toBe(dials + 1);
  await tab.sees("the session", OPEN);
});

test("R11: a hidden page dials no more than once a minute, and at once when it is looked at", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const chromium = afterwards(await Chromium.start());
  const id = await world.shell();
  const tab = await lookAt(chromium, wire.url, id);
  const other = await chromium.tab("about:blank");
  await other.show();
  await tab.sees("that it is hidden", `document.visibilityState === "hidden"`);
  const dials = wire.attaches;
  wire.cut();
  await tab.sees(
    "that the line is cut",
    `document.querySelector('[data-testid="connection"][data-state="reconnecting"]')`,
  );
  await print(id, "unseen");
  // By the first step of the backoff a page in front would have dialled several times over.
  const cut = await tab.value<number>("performance.now()");
  await until("two seconds of the page", async () => (await tab.value<number>("performance.now()")) > cut + 2000);
  expect(wire.attaches).toBe(dials);
  // An hour later somebody looks. From then on no time passes, in which an answer could be missed.
  await tab.value("clock.stop()");
  await tab.value("clock.sleep(3600_000)");
  await tab.show();
  await expectOnce(tab, "unseen");
  expect(wire.attaches).toBe(dials + 1);
  expect((await told(tab)).map(({ name }) => name).slice(-2)).toEqual(["hidden", "visible"]);
});

test("R11, R13: after an hour hidden behind a line that seems open, one dial is made, and nothing is missed", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const chromium = afterwards(await Chromium.start());
  const id = await world.shell();
  const tab = await lookAt(chromium, wire.url, id);
  const other = await chromium.tab("about:blank");
  await other.show();
  await tab.sees("that it is hidden", `document.visibilityState === "hidden"`);
  wire.hold();
  await print(id, "asleep");
  // From now on no time passes, in which an answer could be missed.
  await tab.value("clock.stop()");
  await tab.value("clock.sleep(3600_000)");
  const dials = wire.attaches;
  await tab.show();
  // Everything that wakes comes at once.
  await tab.value(
    `for (const wake of ["online", "pageshow"]) dispatchEvent(new PageTransitionEvent(wake, { persisted: true }))`,
  );
  await expectOnce(tab, "asleep");
  expect(wire.attaches).toBe(dials + 1);
});

test("R11: a page that is left and come back to goes on where it was", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const chromium = afterwards(await Chromium.start());
  const id = await world.shell();
  const tab = await lookAt(chromium, wire.url, id);
  await tab.value("window.mark = 'the same page'");
  await tab.send("Page.navigate", { url: `${world.url}/healthz` });
  await tab.sees("another page", `location.pathname === "/healthz"`);
  await print(id, "away");
  await tab.value("history.back()");
  await expectOnce(tab, "away");
  // It came from the browser's cache for the way back, and was not loaded again.
  expect(await tab.value("window.mark"), "a browser that is short of memory keeps no page for the way back").toBe(
    "the same page",
  );
  expect((await told(tab)).map(({ name }) => name)).toContain("restored");
  await tab.sees("the session", OPEN);
});
