/** Sending commands: requests, timers, storage and other tabs, around the queue that the vectors test. */
import { describe, expect, test, vi } from "vitest";
import { postStorage } from "../src/browser/index.js";
import { Post } from "../src/index.js";
import { refusal } from "./sim/command_gateway.js";
import { BEGIN, MINUTE, OTHER_SESSION, prompt, SESSION, Tab } from "./sim/poster.js";
import { settle } from "./sim/world.js";

describe("sending", () => {
  test("R37: a prompt is stored before send returns, sent once, and then removed from the storage", async () => {
    const tab = new Tab();
    const id = tab.prompt("hi");
    expect([...tab.browser.values.keys()]).toEqual([`bowline.post.${id}`]);
    await tab.world.advance(100);
    expect(tab.gateway.requests).toEqual([{ session: SESSION, id, command: prompt("hi") }]);
    expect(tab.state(id)).toEqual({ name: "delivered", how: "accepted", seq: 0, run: "r0" });
    expect([...tab.browser.values]).toEqual([]);
    expect(tab.states).toEqual(["sending", "delivered"]);
    expect(tab.post.dismiss(id)).toBe(true);
    expect([tab.removed, tab.post.entries]).toEqual([[id], []]);
  });

  test("R41: the app is killed, reopened, and the prompt is delivered without another send", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const ids = ["one", "two"].map((text) => tab.prompt(text));
    await tab.world.advance(100);
    tab.kill();
    const reopened = new Tab(tab);
    await tab.world.advance(100);
    expect(tab.gateway.texts).toEqual(["one", "two"]);
    expect(reopened.post.entries.map(({ id, state }) => [id, state.name])).toEqual(ids.map((id) => [id, "delivered"]));
  });

  test("R41: after more than ten minutes, a reopened app asks", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["hangs"];
    const id = tab.prompt("old");
    tab.kill();
    await tab.world.advance(10 * MINUTE);
    const reopened = new Tab(tab);
    await tab.world.advance(MINUTE);
    expect(reopened.state(id)).toMatchObject({ name: "failed", reason: "old" });
    expect(reopened.post.sendAgain(id)).toBe(true);
    await tab.world.advance(100);
    expect(reopened.state(id)?.name).toBe("delivered");
    expect(tab.gateway.texts).toEqual(["old"]);
  });

  test("R11: a hidden page runs no timers; a wake tries at once", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    tab.world.hidden = true;
    tab.world.signal("hidden");
    await tab.world.advance(MINUTE);
    expect([tab.state(id)?.name, tab.world.timers.size, tab.gateway.requests.length]).toEqual(["retrying", 0, 1]);
    tab.world.hidden = false;
    tab.world.signal("visible");
    expect(tab.gateway.requests).toHaveLength(2);
    await tab.world.advance(100);
    expect(tab.state(id)?.name).toBe("delivered");
  });

  test("a machine that slept tries at once", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["hangs"];
    const id = tab.prompt("hi");
    await tab.world.advance(100);
    tab.world.frozen = true;
    await tab.world.advance(MINUTE);
    tab.world.frozen = false;
    await tab.world.advance(1);
    expect(tab.gateway.requests).toHaveLength(2);
    expect(tab.state(id)).toEqual({ name: "sending", tries: 0 });
  });

  test("a machine that slept asks for what is older than ten minutes", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    await tab.world.advance(100);
    tab.world.frozen = true;
    await tab.world.advance(11 * MINUTE);
    tab.world.frozen = false;
    await tab.world.advance(100);
    expect(tab.state(id)).toMatchObject({ name: "failed", reason: "old" });
  });

  test("R41: airplane mode for 5 s is not a try", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    tab.world.signal("offline");
    await tab.world.advance(5_000);
    expect(tab.state(id)).toEqual({ name: "waiting", why: "offline" });
    tab.world.signal("online");
    await tab.world.advance(100);
    expect(tab.state(id)?.name).toBe("delivered");
    expect(tab.states).toEqual(["sending", "waiting", "sending", "delivered"]);
  });

  test.each(["visible", "restored", "resumed"] as const)(
    "a frozen page that missed `online` sends: %s",
    async (signal) => {
      const tab = new Tab();
      tab.world.signal("offline");
      const id = tab.prompt("hi");
      tab.world.frozen = true;
      await tab.world.advance(MINUTE);
      tab.world.offline = tab.world.frozen = false;
      tab.world.signal(signal);
      await tab.world.advance(100);
      expect(tab.state(id)?.name).toBe("delivered");
    },
  );

  test("a machine that slept and missed `online` sends, without any signal", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["hangs"];
    const id = tab.prompt("hi");
    tab.world.signal("offline");
    tab.world.frozen = true;
    await tab.world.advance(MINUTE);
    tab.world.offline = tab.world.frozen = false;
    await tab.world.advance(100);
    expect(tab.state(id)?.name).toBe("delivered");
  });

  test("a frozen page that missed `offline` waits on its wake", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    await tab.world.advance(100);
    tab.world.offline = true;
    tab.world.signal("visible");
    expect([tab.state(id), tab.gateway.requests.length]).toEqual([{ name: "waiting", why: "offline" }, 1]);
  });

  test("R41: a request that fails just before the page is told that it is offline is not a try", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    tab.world.offline = true;
    await tab.world.advance(100);
    expect(tab.state(id)).toEqual({ name: "waiting", why: "offline" });
    tab.world.signal("offline");
    tab.world.signal("online");
    await tab.world.advance(100);
    expect(tab.states).toEqual(["sending", "waiting", "sending", "delivered"]);
  });

  test("callbacks of what is stored come after the constructor has returned, and not after dispose", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["hangs"];
    const id = tab.prompt("hi");
    tab.kill();
    const { storage } = tab.browser.tab();
    const shown: string[] = [];
    const load = () => {
      const post: Post = new Post({
        api: tab.gateway.api(),
        environment: tab.world.environment,
        storage,
        wallClock: () => BEGIN + tab.world.now,
        on: { entry: ({ id }) => shown.push(...post.entries.filter((entry) => entry.id === id).map(({ id }) => id)) },
      });
      return post;
    };
    const first = load();
    expect([first.entries.length, tab.gateway.requests.length, shown]).toEqual([1, 2, []]);
    await settle();
    expect(shown).toEqual([id]);
    first.dispose();
    load().dispose();
    await settle();
    expect(shown).toEqual([id]);
  });

  test("a page that is loaded offline waits", async () => {
    const tab = new Tab();
    tab.world.offline = true;
    const loaded = new Tab(tab);
    const id = loaded.prompt("hi");
    await tab.world.advance(MINUTE);
    expect([loaded.state(id), tab.gateway.requests]).toEqual([{ name: "waiting", why: "offline" }, []]);
    tab.world.signal("online");
    await tab.world.advance(100);
    expect(loaded.state(id)?.name).toBe("delivered");
  });

  test("an id of a session that no URL can have is refused", () => {
    const tab = new Tab();
    const invalid = { ok: false, why: "invalid" };
    for (const session of ["\ud800", "k3v9\udc00", "\ude00\ud83d"]) {
      expect(tab.post.send(session, prompt("hi"))).toEqual(invalid);
    }
    expect(tab.post.send("\ud83d\ude00", prompt("hi")).ok).toBe(true);
  });

  test("a command that JSON cannot represent is refused", () => {
    const tab = new Tab();
    const circular: Record<string, unknown> = {};
    circular["circular"] = circular;
    for (const field of [5n, circular]) {
      expect(tab.post.send(SESSION, { type: "prompt", field })).toEqual({ ok: false, why: "invalid" });
    }
    const nothing = { type: "prompt", toJSON: () => undefined };
    expect(tab.post.send(SESSION, nothing)).toEqual({ ok: false, why: "invalid" });
    expect([tab.post.entries, tab.browser.values.size]).toEqual([[], 0]);
  });

  test("a gateway on this machine is reached without a network", async () => {
    for (const base of ["http://localhost:7433/", "http://127.0.0.1:7433/", "http://[::1]:7433/"]) {
      const tab = new Tab(undefined, base);
      tab.world.signal("offline");
      const id = tab.prompt("hi");
      await tab.world.advance(100);
      expect(tab.state(id)?.name).toBe("delivered");
    }
  });

  test("a callback that sends finds its command stored", async () => {
    const tab = new Tab();
    let stored = 0;
    tab.onEntry = ({ state }) => {
      if (state.name !== "sending" || stored) return;
      tab.prompt("second");
      stored = tab.browser.values.size;
    };
    tab.prompt("first");
    expect(stored).toBe(2);
    await tab.world.advance(100);
    expect(tab.gateway.texts).toEqual(["first", "second"]);
  });

  test("an ended session is restarted, then the same id is sent", async () => {
    const tab = new Tab();
    tab.gateway.faults = [refusal(410, "session_gone", "the session has ended")];
    const id = tab.prompt("hi");
    expect(await tab.post.resumeAndSend(id)).toBe(false);
    await tab.world.advance(100);
    expect(tab.state(id)).toEqual({ name: "failed", reason: "session_gone", message: "the session has ended" });
    tab.gateway.restarts = [refusal(422, "no_program", "claude is not installed")];
    const failing = tab.post.resumeAndSend(id);
    const failed = expect(failing).rejects.toMatchObject({ code: "no_program" });
    await tab.world.advance(100);
    await failed;
    expect(tab.state(id)?.name).toBe("failed");
    const both = Promise.all([tab.post.resumeAndSend(id), tab.post.resumeAndSend(id)]);
    await tab.world.advance(100);
    expect(await both).toEqual([true, true]);
    expect(tab.gateway.restarted).toBe(2);
    expect(tab.gateway.requests.map((request) => request.id)).toEqual([id, id]);
    expect(tab.state(id)?.name).toBe("delivered");
  });

  test("events that record no command, or are not events, are ignored", () => {
    const tab = new Tab();
    const id = tab.prompt("hi");
    const events = [
      null,
      7,
      [],
      { type: "prompt" },
      { type: "tool_call", command: id },
      { type: "prompt", command: 5 },
    ];
    for (const event of events) tab.post.handleEvent(SESSION, { seq: 1, event });
    tab.post.handleEvent(SESSION, { seq: -1, event: { type: "prompt", command: id } });
    expect(tab.state(id)?.name).toBe("sending");
    tab.post.handleEvent(SESSION, { seq: 9, event: { type: "prompt", command: id, run: "r4", text: "hi" } });
    expect(tab.state(id)).toEqual({ name: "delivered", how: "accepted", seq: 9, run: "r4" });
    expect(tab.gateway.open).toBe(0);
  });
});

describe("dispose", () => {
  test("R15: leaves no timer, listener or request, and keeps the entries", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["hangs", refusal(410, "session_gone", "it has ended"), "lost"];
    tab.gateway.restarts = ["hangs"];
    expect([tab.world.listeners.size, tab.browser.listeners]).toEqual([1, 1]);
    const ids = [tab.prompt("one"), tab.prompt("two", OTHER_SESSION), tab.prompt("three", "cccccccccccc")];
    await tab.world.advance(100);
    expect(ids.map((id) => tab.state(id)?.name)).toEqual(["sending", "failed", "retrying"]);
    const resumed = tab.post.resumeAndSend(ids[1]!);
    const failed = expect(resumed).rejects.toMatchObject({ code: "unreachable" });
    expect(tab.gateway.open).toBe(2);
    const { length } = tab.states;
    tab.post.dispose();
    tab.post.dispose();
    await failed;
    await settle();
    expect([tab.world.timers.size, tab.world.listeners.size, tab.gateway.open]).toEqual([0, 0, 0]);
    expect(tab.browser.listeners).toBe(0);
    expect(tab.browser.values.size).toBe(3);
    tab.world.signal("visible");
    expect(tab.post.send(SESSION, prompt("late"))).toEqual({ ok: false, why: "invalid" });
    expect([tab.post.sendAgain(ids[1]!), tab.post.discard(ids[0]!)]).toEqual([false, false]);
    await tab.world.advance(MINUTE);
    expect([tab.states.length, tab.gateway.requests.length]).toEqual([length, 3]);
  });
});

describe("other tabs", () => {
  test("a tab that discards an entry removes it from the others", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost", "lost", "lost"];
    const id = tab.prompt("hi");
    await tab.world.advance(50);
    const other = new Tab(tab);
    await tab.world.advance(50);
    expect(tab.post.discard(id)).toBe(true);
    expect([other.removed, other.post.entries, other.gateway.open]).toEqual([[id], [], 0]);
    await tab.world.advance(MINUTE);
    expect(tab.gateway.requests).toHaveLength(2);
  });

  test("an entry that another tab stores again stays", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost", "hangs", refusal(403, "not_allowed", "the token may only read")];
    const id = tab.prompt("hi");
    await tab.world.advance(50);
    const other = new Tab(tab);
    await tab.world.advance(1_000);
    expect([tab.state(id)?.name, other.state(id)?.name]).toEqual(["failed", "sending"]);
  });

  test("a page that was frozen learns on its wake what another tab removed", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    await tab.world.advance(50);
    tab.browser.values.clear();
    tab.world.signal("restored");
    expect([tab.removed, tab.gateway.requests.length]).toEqual([[id], 1]);
  });

  test("what two tabs stored beyond the limits is reported, and stays stored", async () => {
    const first = new Tab();
    const second = new Tab(first);
    for (const tab of [first, second]) for (let n = 0; n < 40; n += 1) tab.prompt(`${n}`);
    const third = new Tab(first);
    await settle();
    expect([third.post.entries.length, third.leftOut.length]).toEqual([64, 16]);
    expect(third.leftOut.every((id) => first.browser.tab().storage.has(id))).toBe(true);
  });

  test("R37: what did not fit at a reload is sent when there is room, before anything new", async () => {
    const first = new Tab();
    const second = new Tab(first);
    first.gateway.faults = Array.from({ length: 2 }, () => "hangs" as const);
    const ids = [first, second].flatMap((tab) => Array.from({ length: 40 }, (_, n) => tab.prompt(`${n}`)));
    first.kill();
    second.kill();
    first.gateway.ran.length = 0;
    const third = new Tab(first);
    expect(third.post.send(SESSION, prompt("new"))).toEqual({ ok: false, why: "session_full" });
    await first.world.advance(50);
    expect(third.post.send(SESSION, prompt("new"))).toEqual({ ok: false, why: "session_full" });
    await first.world.advance(1_000);
    expect(third.post.send(SESSION, prompt("new")).ok).toBe(true);
    await first.world.advance(1_000);
    const ran = first.gateway.ran.slice(0, 80).map(({ id }) => id);
    expect(new Set(ran)).toEqual(new Set(ids));
    expect(first.gateway.texts.slice(80)).toEqual(["new"]);
    expect(first.browser.values.size).toBe(0);
  });

  test("R37: what did not fit is taken over by the next send if the storage could not be read before", async () => {
    const first = new Tab();
    const second = new Tab(first);
    first.gateway.faults = Array.from({ length: 2 }, () => "hangs" as const);
    for (const tab of [first, second]) for (let n = 0; n < 40; n += 1) tab.prompt(`${n}`);
    first.kill();
    second.kill();
    first.gateway.ran.length = 0;
    const third = new Tab(first);
    first.browser.broken = true;
    await first.world.advance(2_000);
    expect(first.gateway.texts).toHaveLength(64);
    first.browser.broken = false;
    expect(third.post.send(SESSION, prompt("new")).ok).toBe(true);
    await first.world.advance(2_000);
    expect([first.gateway.texts.length, first.gateway.texts.at(-1)]).toEqual([81, "new"]);
  });

  test("a user who empties the storage loses nothing that the page still has", async () => {
    const tab = new Tab();
    tab.gateway.faults = ["lost"];
    const id = tab.prompt("hi");
    await tab.world.advance(50);
    tab.browser.clear();
    tab.world.signal("visible");
    await tab.world.advance(50);
    expect(tab.state(id)?.name).toBe("delivered");
  });
});

describe("storage", () => {
  test("one that is full means memory only: the page is told, and the prompt is sent", async () => {
    const tab = new Tab();
    tab.browser.full = true;
    const id = tab.prompt("hi");
    expect(tab.memoryOnly).toEqual([id]);
    tab.world.signal("visible");
    await tab.world.advance(100);
    expect(tab.state(id)?.name).toBe("delivered");
  });

  test("gateways under different paths of an origin have their own entries", async () => {
    const bases = ["https://host/", "https://host/a/", "https://host/a/b/", "https://host/a%20/"];
    const first = new Tab(undefined, bases[0]);
    const tabs = [first, ...bases.slice(1).map((base) => new Tab(first, base))];
    first.gateway.faults = bases.map(() => "hangs" as const);
    const ids = tabs.map((tab) => tab.prompt("hi"));
    expect(first.browser.values.size).toBe(4);
    const stored = bases.map((base) => first.browser.tab(new URL(base).pathname).storage.load());
    expect(stored.map((entries) => entries.map(({ id }) => id))).toEqual(ids.map((id) => [id]));
    // Nothing that one gateway's page removes reaches another's.
    tabs[1]!.post.discard(ids[1]!);
    expect(tabs.map((tab) => tab.post.entries.length)).toEqual([1, 0, 1, 1]);
    expect(tabs.map((tab) => tab.removed.length)).toEqual([0, 1, 0, 0]);
  });

  test("by default, the path is that of the page", () => {
    const values: string[] = [];
    const open = () => ({
      length: 0,
      key: () => null,
      getItem: () => null,
      setItem: (key: string) => values.push(key),
      removeItem: () => {},
    });
    vi.stubGlobal("document", { baseURI: "https://host/terminals/?x#y" });
    postStorage({ open }).save("c1", "{}");
    vi.stubGlobal("document", { baseURI: "https://host/index.html" });
    postStorage({ open }).save("c1", "{}");
    vi.unstubAllGlobals();
    expect(values).toEqual(["bowline.post /terminals/ c1", "bowline.post.c1"]);
  });

  test("garbage and entries of a newer version are shown as failed, and can be discarded", async () => {
    const first = new Tab();
    first.browser.values.set("bowline.post.x1", "garbage");
    first.browser.values.set("bowline.post.x2", JSON.stringify({ version: 2, id: "x2", prompt: "?" }));
    first.browser.values.set("bowline.key", "not an entry");
    const tab = new Tab(first);
    const failures = tab.post.entries.map(({ id, state }) => [id, state.name === "failed" && state.reason]);
    expect(failures).toEqual([
      ["x1", "unreadable"],
      ["x2", "unreadable"],
    ]);
    expect([tab.post.sendAgain("x1"), await tab.post.resumeAndSend("x1"), tab.post.discard("x1")]).toEqual([
      false,
      false,
      true,
    ]);
    expect([...tab.browser.values.keys()]).toEqual(["bowline.post.x2", "bowline.key"]);
    const id = tab.prompt("hi");
    await tab.world.advance(100);
    expect(tab.state(id)?.name).toBe("delivered");
  });

  test("without one, prompts are sent from memory", async () => {
    const { world, gateway } = new Tab();
    const post = new Post({ api: gateway.api(), environment: world.environment, wallClock: () => BEGIN + world.now });
    expect(post.send(SESSION, prompt("hi")).ok).toBe(true);
    await world.advance(100);
    expect(gateway.texts).toEqual(["hi"]);
  });
});
