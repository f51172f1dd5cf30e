/** Bugs of other clients that send prompts. Each test is named after one, and shows that it cannot happen here. */
import { expect, test, vi } from "vitest";
import { postStorage } from "../src/browser/index.js";
import { EventsConnection, Post, type PostEntry } from "../src/index.js";
import { CUT } from "./sim/attached.js";
import { refusal } from "./sim/command_gateway.js";
import { BEGIN, MINUTE, OTHER_SESSION, prompt, SESSION, Tab } from "./sim/poster.js";

/** Opens an event stream in the world of a tab. */
function stream(tab: Tab): EventsConnection {
  tab.world.onDial = (socket) => tab.world.later(() => socket.accept());
  const target = () => ({ url: "ws://host/v1/events", protocols: [] });
  return new EventsConnection({ environment: tab.world.environment, target, on: {} });
}

test("retry only on reconnect while the stream is healthy: a 503 is tried again by its own timer", async () => {
  const tab = new Tab();
  const events = stream(tab);
  await tab.world.advance(100);
  tab.gateway.faults = [refusal(503, "unreachable", "the session does not answer"), "lost"];
  const id = tab.prompt("hi");
  const dials = tab.world.sockets.length;
  await tab.world.advance(3_000);
  expect(tab.state(id)?.name).toBe("delivered");
  expect(tab.world.sockets).toHaveLength(dials);
  events.dispose();
});

test("retry timer lost when the stream drops: the prompt is tried again all the same", async () => {
  const tab = new Tab();
  const events = stream(tab);
  await tab.world.advance(100);
  tab.gateway.faults = ["lost"];
  const id = tab.prompt("hi");
  await tab.world.advance(50);
  expect(tab.state(id)?.name).toBe("retrying");
  tab.world.onDial = () => {};
  tab.world.live.forEach((socket) => socket.cut(CUT));
  events.dispose();
  await tab.world.advance(1_000);
  expect(tab.state(id)?.name).toBe("delivered");
});

test("concurrent flush reorders prompts: however many wakes come, one request of a session is under way", async () => {
  const tab = new Tab();
  tab.gateway.faults = ["lost", "no response", undefined, "lost"];
  for (const text of ["one", "two", "three", "four"]) {
    tab.prompt(text);
    for (const signal of ["visible", "online", "resumed", "restored"] as const) tab.world.signal(signal);
    expect(tab.gateway.open).toBe(1);
  }
  for (let i = 0; i < 50; i++) {
    await tab.world.advance(37);
    tab.world.signal("online");
    expect(tab.gateway.open).toBeLessThanOrEqual(1);
  }
  expect(tab.gateway.texts).toEqual(["one", "two", "three", "four"]);
});

test("a message queued twice: a prompt whose response was lost is run once, also after a reload", async () => {
  const tab = new Tab();
  tab.gateway.faults = ["no response", "no response"];
  const id = tab.prompt("hi");
  await tab.world.advance(50);
  tab.kill();
  const reloaded = new Tab(tab);
  await tab.world.advance(3_000);
  expect(reloaded.post.entries).toHaveLength(1);
  expect(reloaded.state(id)?.name).toBe("delivered");
  expect(tab.gateway.requests.map((request) => request.id)).toEqual([id, id, id]);
  expect(tab.gateway.texts).toEqual(["hi"]);
});

test("the cap bypassed on the retry path: failed, retried and restored prompts count, and the text is refused", async () => {
  const tab = new Tab();
  tab.gateway.faults = [refusal(403, "not_allowed", "the token may only read")];
  const ids = Array.from({ length: 64 }, (_, i) => tab.prompt(`text ${i}`));
  await tab.world.advance(100);
  const full = { ok: false, why: "session_full" };
  expect(tab.state(ids[0]!)?.name).toBe("failed");
  expect(tab.post.send(SESSION, prompt("one more"))).toEqual(full);
  tab.gateway.faults = ["lost", "lost", "lost", "lost"];
  expect(tab.post.sendAgain(ids[0]!)).toBe(true);
  await tab.world.advance(1_000);
  expect(tab.post.send(SESSION, prompt("one more"))).toEqual(full);
  tab.kill();
  const [id, stored] = [...tab.browser.values][0]!;
  for (let i = 0; i < 5; i++) {
    const other = `00000000-0000-4000-8000-00000000000${i}`;
    tab.browser.values.set(`bowline.post.${other}`, stored.replaceAll(id.slice("bowline.post.".length), other));
  }
  const reloaded = new Tab(tab);
  expect(reloaded.post.entries).toHaveLength(64);
  expect(reloaded.post.send(SESSION, prompt("one more"))).toEqual(full);
  expect(tab.browser.values.size).toBe(69);
});

test.each([
  [400, "bad_request", "a prompt needs a text"],
  [403, "not_allowed", "the token may only read"],
  [413, "too_large", "the prompt is too long"],
  [422, "not_allowed_mode", "the mode yolo is not allowed"],
])("400/401/403 swallowed silently: %i is shown as failed, in the server's words", async (status, code, message) => {
  const tab = new Tab();
  tab.gateway.faults = [refusal(status, code, message)];
  const id = tab.prompt("hi");
  await tab.world.advance(100);
  expect(tab.state(id)).toEqual({ name: "failed", reason: "refused", code, message });
});

test("400/401/403 swallowed silently: 401 is reported once, and the prompts go on after the login", async () => {
  const tab = new Tab();
  tab.gateway.faults = [1, 2].map(() => refusal(401, "not_authenticated", "log in"));
  const ids = [tab.prompt("one"), tab.prompt("two"), tab.prompt("three", OTHER_SESSION)];
  await tab.world.advance(MINUTE);
  expect(ids.map((id) => tab.state(id))).toEqual(ids.map(() => ({ name: "waiting", why: "login" })));
  expect([tab.logins, tab.gateway.requests.length]).toEqual([1, 2]);
  tab.post.handleLogin();
  await tab.world.advance(100);
  expect(ids.map((id) => tab.state(id)?.name)).toEqual(["delivered", "delivered", "delivered"]);
});

test("404 retried for ever: it fails at once, and no timer is left", async () => {
  const tab = new Tab();
  tab.gateway.faults = [refusal(404, "unknown_session", "no session has this id")];
  const id = tab.prompt("hi");
  await tab.world.advance(10 * MINUTE);
  expect(tab.state(id)).toMatchObject({ name: "failed", reason: "refused", code: "unknown_session" });
  expect([tab.gateway.requests.length, tab.world.timers.size]).toEqual([1, 0]);
});

test("spinner stuck after a failed send: a request that hangs, and ten minutes of failures, end in a state", async () => {
  const tab = new Tab();
  tab.gateway.faults = ["hangs", ...Array.from({ length: 100 }, () => "lost" as const)];
  const id = tab.prompt("hi");
  await tab.world.advance(15_000);
  expect(tab.state(id)).toMatchObject({ name: "retrying", tries: 1, message: "no response within 15 s" });
  expect(tab.gateway.open).toBe(0);
  await tab.world.advance(10 * MINUTE);
  expect(tab.state(id)).toMatchObject({ name: "failed", reason: "expired" });
  expect([tab.world.timers.size, tab.gateway.open]).toEqual([0, 0]);
});

test("error banner never cleared: sending again replaces the failure of the entry, and delivery ends it", async () => {
  const tab = new Tab();
  tab.gateway.faults = [refusal(507, "no_space", "the disk is full")];
  const id = tab.prompt("hi");
  await tab.world.advance(100);
  expect(tab.state(id)).toEqual({ name: "failed", reason: "no_space", message: "the disk is full" });
  expect(tab.post.sendAgain(id)).toBe(true);
  expect(tab.state(id)).toEqual({ name: "sending", tries: 0 });
  await tab.world.advance(100);
  expect(tab.post.entries.map(({ state }) => state.name)).toEqual(["delivered"]);
});

test("error banner cleared by another session's event: only the event of this command, in its session, clears it", async () => {
  const tab = new Tab();
  tab.gateway.faults = [refusal(403, "not_allowed", "the token may only read")];
  const id = tab.prompt("hi");
  await tab.world.advance(100);
  const failed = tab.state(id);
  tab.post.handleEvent(OTHER_SESSION, { seq: 5, event: { type: "prompt", command: id, run: "r1" } });
  tab.post.handleEvent(SESSION, { seq: 5, event: { type: "prompt", command: "another", run: "r1" } });
  tab.post.handleEvent(SESSION, { seq: 6, event: { type: "text", run: "r1", block: "m1", delta: "hi" } });
  const other = tab.prompt("other", OTHER_SESSION);
  await tab.world.advance(100);
  expect([tab.state(id), tab.state(other)?.name]).toEqual([failed, "delivered"]);
});

test("retries counted twice: a request that is dropped after 15 s and then fails is one try", async () => {
  const tab = new Tab();
  tab.gateway.faults = ["hangs", "hangs"];
  const id = tab.prompt("hi");
  const tries: number[] = [];
  tab.onEntry = ({ state }: PostEntry) => state.name === "retrying" && tries.push(state.tries);
  await tab.world.advance(40_000);
  expect(tries).toEqual([1, 2]);
  expect(tab.state(id)?.name).toBe("delivered");
  expect(tab.gateway.requests).toHaveLength(3);
});

test("storage that throws at module load: a page without storage, or without a window, still sends", async () => {
  const tab = new Tab();
  tab.browser.broken = true;
  const broken = new Tab(tab);
  const id = broken.prompt("hi");
  await tab.world.advance(100);
  expect(broken.state(id)?.name).toBe("delivered");
  expect(broken.memoryOnly).toEqual([id]);
  // Here, in Node, `window` does not exist: every use of the storage throws.
  const { world, gateway } = tab;
  const storage = postStorage();
  const wallClock = () => BEGIN + world.now;
  const post = new Post({ api: gateway.api(), environment: world.environment, storage, wallClock });
  expect(post.send(SESSION, prompt("no window")).ok).toBe(true);
  await world.advance(100);
  expect(gateway.texts).toEqual(["hi", "no window"]);
});

test("storage that throws at module load: the package is loaded in a page that forbids storage, and sends", async () => {
  let tries = 0;
  const forbidden = {
    get(): Storage {
      tries += 1;
      throw new DOMException("The operation is insecure.", "SecurityError");
    },
  };
  const page = Object.defineProperties(new EventTarget(), { localStorage: forbidden, sessionStorage: forbidden });
  vi.stubGlobal("window", page);
  vi.stubGlobal("document", { baseURI: "http://host/" });
  vi.resetModules();
  try {
    const [browser, client] = [await import("../src/browser/index.js"), await import("../src/index.js")];
    expect(tries).toBe(0);
    const { world, gateway } = new Tab();
    const wallClock = () => BEGIN + world.now;
    const storage = browser.postStorage();
    const post = new client.Post({ api: gateway.api(), environment: world.environment, storage, wallClock });
    expect(post.send(SESSION, prompt("hi")).ok).toBe(true);
    await world.advance(100);
    expect(gateway.texts).toEqual(["hi"]);
    expect(tries).toBeGreaterThan(0);
  } finally {
    vi.unstubAllGlobals();
  }
});

test("a duplicated tab shares the id: both tabs send the prompt, it is run once, and neither evicts the other", async () => {
  const tab = new Tab();
  tab.gateway.faults = ["lost"];
  const ids = [tab.prompt("one"), tab.prompt("two")];
  await tab.world.advance(50);
  const twin = new Tab(tab);
  twin.prompt("of the twin");
  await tab.world.advance(3_000);
  expect(tab.gateway.texts.filter((text) => text !== "of the twin")).toEqual(["one", "two"]);
  expect(tab.gateway.texts).toHaveLength(3);
  // The tab that settled an entry shows it; the other one has let it go.
  for (const id of ids) {
    const states = [tab.state(id)?.name, twin.state(id)?.name];
    expect(states.filter((state) => state === "delivered").length).toBeGreaterThanOrEqual(1);
    expect(states.filter((state) => state !== "delivered" && state !== undefined)).toEqual([]);
  }
  expect(tab.browser.values.size).toBe(0);
  expect(tab.post.send(SESSION, prompt("after")).ok).toBe(true);
});
