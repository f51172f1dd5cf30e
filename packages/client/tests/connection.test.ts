/** A terminal connection in a world that the test owns: each row that it must hold, told as a story. */
import { describe, expect, test, vi } from "vitest";
import { type Closed, type Target } from "../src/index.js";
import { Session } from "./sim/session.js";
import { Viewer } from "./sim/viewer.js";
import { settle, World } from "./sim/world.js";

const CUT: Closed = { kind: "code", code: 1006, reason: "", done: false };
const closed = (code: number, reason = ""): Closed => ({ kind: "code", code, reason, done: false });

async function attached(more: ConstructorParameters<typeof Viewer>[1] = {}) {
  const world = new World();
  const session = new Session(world);
  session.print([1, 2, 3]);
  const viewer = new Viewer(world, more);
  await world.advance(100);
  expect(viewer.connection.state.name).toBe("open");
  return { world, session, viewer, connection: viewer.connection };
}

describe("a connection", () => {
  test("R9, R22: shows a snapshot, then output; after a cut exactly what was missed, without a reset", async () => {
    const { world, session, viewer } = await attached();
    expect(viewer.shown).toEqual([1, 2, 3]);
    world.live[0]!.cut(CUT);
    session.print([4, 5]);
    await world.advance(2_000);
    expect(viewer.shown).toEqual([1, 2, 3, 4, 5]);
    expect(viewer.told).toEqual(["attached snapshot", "snapshot all", "attached exact"]);
    expect(viewer.names).toEqual(["open", "reconnecting", "open"]);
  });

  test("acknowledges only what the terminal has rendered", async () => {
    const { world, session, viewer } = await attached();
    viewer.slow = true;
    session.print(new Array(1000).fill(7));
    await world.advance(1_000);
    expect(viewer.shown.length).toBeLessThan(600);
    for (let i = 0; i < 20; i++) {
      viewer.render();
      await world.advance(50);
    }
    expect(viewer.shown.length).toBe(1003);
  });

  test("a terminal that renders late acknowledges nothing on the connection after", async () => {
    const { world, session, viewer } = await attached();
    viewer.slow = true;
    session.print([4, 5, 6]);
    await world.advance(100);
    const late = viewer.rendering.splice(0);
    // The log lost its end, so the next connection starts before what was shown.
    session.log.length = 2;
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(viewer.shown).toEqual([1, 2]);
    const acks = session.acks.length;
    for (const rendered of late) rendered();
    await world.advance(100);
    expect(session.acks).toHaveLength(acks);
    viewer.render();
    await world.advance(100);
    expect(session.acks.slice(acks)).toEqual([2]);
  });

  test("a snapshot that is cut in the middle claims nothing", async () => {
    const { world, session, viewer } = await attached();
    session.print(new Array(200).fill(9));
    await world.advance(100);
    session.lagging = true;
    world.live[0]!.cut(CUT);
    await world.advance(0);
    while (viewer.shown.length !== 64) await world.advance(1);
    world.live[0]!.cut(CUT);
    await world.advance(5_000);
    expect(session.hellos.map(({ cursor }) => cursor?.offset)).toEqual([undefined, 203, undefined]);
    expect(viewer.shown).toEqual(session.log);
  });

  test("passes on what the session tells", async () => {
    const { world, session, viewer, connection } = await attached();
    viewer.told.length = 0;
    session.say({ type: "title", title: "make" });
    session.say({ type: "cwd", cwd: "/tmp" });
    session.say({ type: "notify", title: "", body: "done" });
    session.say({ type: "url", url: "https://example.com/", open: true });
    session.say({ type: "bell" });
    session.say({ type: "presence", clients: [{ client: connection.client, write: true, size: false }] });
    session.say({ type: "error", code: "not_allowed", message: "no", fatal: false });
    expect(connection.command({ type: "signal", name: "INT" }, "c1")).toEqual({ id: "c1" });
    connection.claimSize({ cols: 5000, rows: 30 });
    await world.advance(100);
    expect(viewer.told).toEqual([
      "title make",
      "cwd /tmp",
      "notify  done",
      "url https://example.com/ true",
      "bell",
      "presence 1 false",
      "command c1 accepted",
      "resize 1000x30",
    ]);
    expect(viewer.errors).toEqual([{ source: "server", code: "not_allowed", message: "no" }]);
    expect(connection.you).toEqual({ write: true, size: false });
  });

  test("R15: exit ends it for good, and a wake does not bring it back", async () => {
    const { world, session, viewer, connection } = await attached();
    session.end(3);
    await world.advance(100);
    expect(viewer.told.at(-1)).toBe("exit 3");
    expect(connection.state.name).toBe("ended");
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    connection.retry();
    await world.advance(100_000);
    expect(world.sockets).toHaveLength(1);
    expect(connection.input("x")).toBe("ended");
  });

  test("the session's words about a close are the state's reason", async () => {
    const { world, session, connection } = await attached();
    session.refuse = closed(4403, "this token may not");
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(connection.state).toEqual({ name: "gone", why: "not_allowed", reason: "this token may not" });
  });

  test("a callback that throws is reported by the runtime and stops nothing", async () => {
    const thrown: unknown[] = [];
    const catchIt = (error: unknown) => thrown.push(error);
    const before = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", catchIt);
    try {
      const world = new World();
      new Session(world);
      const boom = new Error("the page's own bug");
      const viewer = new Viewer(world, { on: { state: () => { throw boom; } } });
      await world.advance(100);
      expect(viewer.connection.state.name).toBe("open");
      expect(thrown).toEqual([boom]);
    } finally {
      process.removeListener("uncaughtException", catchIt);
      for (const listener of before) process.on("uncaughtException", listener);
    }
  });
});

describe("reconnecting", () => {
  test("R3: a killed session: one retry, then gone", async () => {
    const { world, session, viewer } = await attached();
    session.refuse = closed(4404);
    world.live[0]!.cut(CUT);
    await world.advance(600_000);
    expect(world.sockets).toHaveLength(2);
    expect(viewer.names).toEqual(["open", "reconnecting", "gone"]);
    expect([world.listeners.size, world.timers.size]).toEqual([0, 0]);
  });

  test("R7, R17: the tries are used up, then it is quiet until it is online again", async () => {
    const { world, session, viewer, connection } = await attached({ backoff: { base: 500, cap: 1000, tries: 3 } });
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    await world.advance(600_000);
    expect(connection.state.name).toBe("offline");
    expect(world.sockets).toHaveLength(4);
    expect(world.timers.size).toBe(0);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect(connection.state.name).toBe("open");
    expect(viewer.states.filter(({ name }) => name === "offline")).toHaveLength(1);
  });

  test("R8: a server that accepts and closes gets no endless loop", async () => {
    const { world, session, connection } = await attached();
    session.refuse = closed(1011);
    world.live[0]!.cut(CUT);
    await world.advance(600_000);
    expect(connection.state.name).toBe("offline");
    expect(world.sockets.length).toBe(13);
  });

  test("R14: a wait that is longer than timers know is waited for, and costs nothing", async () => {
    const { world, session, connection } = await attached();
    session.refuse = closed(4429, "retry_after=2200000");
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(connection.state.name).toBe("reconnecting");
    const longest = 2 ** 31 - 1;
    const [timer] = [...world.timers.values()];
    expect(timer!.at - world.now).toBeLessThanOrEqual(longest);
    // When that is over, what is left is waited for.
    session.refuse = undefined;
    const dials = world.sockets.length;
    await world.advance(longest);
    expect([world.sockets.length, world.timers.size]).toEqual([dials, 1]);
    await world.advance(2_200_000_000 - longest);
    expect(world.sockets.length).toBe(dials + 1);
  });

  test("4429 is not dialled sooner than the server asked, not even when woken", async () => {
    const { world, session } = await attached();
    session.refuse = closed(4429, "retry_after=8");
    world.live[0]!.cut(CUT);
    await world.advance(1_000);
    const dials = world.sockets.length;
    world.signal("visible");
    await world.advance(5_000);
    expect(world.sockets).toHaveLength(dials);
    await world.advance(3_000);
    expect(world.sockets).toHaveLength(dials + 1);
  });

  test("4401 waits for a login; then it goes on where it was", async () => {
    const { world, session, viewer, connection } = await attached();
    session.refuse = closed(4401);
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(connection.state.name).toBe("needs-login");
    const dials = world.sockets.length;
    for (const signal of ["visible", "online", "resumed", "restored"] as const) world.signal(signal);
    await world.advance(100_000);
    expect(world.sockets).toHaveLength(dials);
    session.refuse = undefined;
    session.print([4]);
    connection.retry();
    await world.advance(100);
    expect(connection.state.name).toBe("open");
    expect(viewer.shown).toEqual([1, 2, 3, 4]);
  });
});

describe("wakes", () => {
  test("R13: several in one turn are one dial and one question for the URL", async () => {
    let asked = 0;
    const target = async (): Promise<Target> => {
      asked += 1;
      return { url: "ws://test/", protocols: [] };
    };
    const { world, session, connection } = await attached({ target, backoff: { base: 500, cap: 1000, tries: 1 } });
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    await world.advance(10_000);
    expect(connection.state.name).toBe("offline");
    session.refuse = undefined;
    const before = asked;
    for (const signal of ["resumed", "restored", "visible", "online", "online"] as const) world.signal(signal);
    connection.retry();
    await world.advance(100);
    expect(asked).toBe(before + 1);
    expect(connection.state.name).toBe("open");
  });

  test("R12: a socket that says OPEN after a sleep is probed, and replaced when it is silent for 2 s", async () => {
    const { world, viewer } = await attached();
    world.live[0]!.zombie = true;
    world.frozen = true;
    await world.advance(30_000);
    world.frozen = false;
    world.signal("resumed");
    await world.advance(1_900);
    expect(world.sockets).toHaveLength(1);
    await world.advance(1_000);
    expect(world.sockets).toHaveLength(2);
    expect(viewer.names.at(-1)).toBe("open");
  });

  test("R12: one that answers the probe stays", async () => {
    const { world } = await attached();
    world.frozen = true;
    await world.advance(30_000);
    world.frozen = false;
    world.signal("visible");
    await world.advance(10_000);
    expect(world.sockets).toHaveLength(1);
  });

  test("R12: after a long freeze it is dialled afresh, at once", async () => {
    const { world } = await attached();
    world.frozen = true;
    await world.advance(3_600_000);
    world.frozen = false;
    world.signal("resumed");
    world.signal("visible");
    await settle();
    expect(world.sockets).toHaveLength(2);
    expect(world.live).toHaveLength(1);
    await world.advance(100);
    expect(world.sockets).toHaveLength(2);
  });

  test("a lid that was closed wakes it, though the page was never told", async () => {
    const { world, connection } = await attached();
    world.live[0]!.zombie = true;
    world.frozen = true;
    await world.advance(3_600_000);
    world.frozen = false;
    await world.advance(0);
    expect(world.sockets).toHaveLength(2);
    await world.advance(100);
    expect(connection.state.name).toBe("open");
  });

  test("R11: hidden, it tries once a minute; visible, at once", async () => {
    const { world, session, viewer } = await attached();
    session.refuse = CUT;
    world.hidden = true;
    world.signal("hidden");
    world.live[0]!.cut(CUT);
    await world.advance(59_000);
    expect(world.sockets).toHaveLength(1);
    await world.advance(5 * 60_000);
    expect(world.sockets.length).toBeLessThanOrEqual(6);
    expect(world.sockets.length).toBeGreaterThanOrEqual(5);
    session.refuse = undefined;
    world.hidden = false;
    world.signal("visible");
    await world.advance(100);
    expect(viewer.names.at(-1)).toBe("open");
  });

  test("R11, R12: a page that is resumed while still hidden finds its line dead and dials at once, then once a minute", async () => {
    const { world, session } = await attached();
    world.hidden = true;
    world.signal("hidden");
    world.signal("frozen");
    world.live[0]!.zombie = true;
    world.frozen = true;
    await world.advance(30_000);
    world.frozen = false;
    session.refuse = CUT;
    world.signal("resumed");
    await world.advance(1_999);
    expect(world.sockets).toHaveLength(1);
    await world.advance(1);
    expect(world.sockets).toHaveLength(2);
    await world.advance(59_000);
    expect(world.sockets).toHaveLength(2);
  });

  test("R11: a line that answered its probe and is cut later waits for its minute", async () => {
    const { world } = await attached();
    world.hidden = true;
    world.signal("hidden");
    world.signal("resumed");
    await world.advance(1_000);
    world.live[0]!.cut(CUT);
    await world.advance(59_000);
    expect(world.sockets).toHaveLength(1);
    await world.advance(2_000);
    expect(world.sockets).toHaveLength(2);
  });

  test("R11: a dial from before a sleep that comes to nothing is made again at once", async () => {
    const { world, session, viewer } = await attached();
    session.mute = true;
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(world.sockets).toHaveLength(2);
    world.hidden = true;
    world.signal("hidden");
    world.frozen = true;
    await world.advance(3_600_000);
    world.frozen = false;
    session.mute = false;
    world.signal("resumed");
    await world.advance(100);
    expect(world.sockets).toHaveLength(3);
    expect(viewer.names.at(-1)).toBe("open");
  });

  test("R11: online while still hidden is one dial, then once a minute again", async () => {
    const { world, session } = await attached();
    session.refuse = CUT;
    world.hidden = true;
    world.signal("hidden");
    world.live[0]!.cut(CUT);
    await world.advance(1_000);
    world.signal("online");
    await world.advance(59_000);
    expect(world.sockets).toHaveLength(2);
  });
});

describe("where to dial", () => {
  test("R14: a builder that fails is reported, and tried again", async () => {
    const world = new World();
    new Session(world);
    let fail = true;
    const target = () => {
      if (fail) throw new Error("no ticket today");
      return { url: "ws://test/", protocols: [] };
    };
    const viewer = new Viewer(world, { target });
    await world.advance(400);
    expect(viewer.errors).toMatchObject([{ source: "target", message: "where to dial is not known: no ticket today" }]);
    expect(viewer.connection.state).toMatchObject({ name: "reconnecting", attempt: 1 });
    fail = false;
    await world.advance(1_000);
    expect(viewer.connection.state.name).toBe("open");
  });

  test("R14: one that hangs times out, and comes too late when it answers after all", async () => {
    const world = new World();
    new Session(world);
    const hung: ((target: Target) => void)[] = [];
    const viewer = new Viewer(world, { target: () => new Promise((resolve) => hung.push(resolve)) });
    await world.advance(16_000);
    expect(viewer.errors).toMatchObject([{ source: "target", message: expect.stringContaining("not answered in time") }]);
    expect(hung).toHaveLength(2);
    hung[0]!({ url: "ws://late/", protocols: [] });
    await world.advance(100);
    expect(world.sockets).toHaveLength(0);
    hung[1]!({ url: "ws://test/", protocols: [] });
    await world.advance(100);
    expect(viewer.connection.state.name).toBe("open");
  });

  test("a refusal of the ticket says what the dial would have said", async () => {
    const world = new World();
    const refusal = Object.assign(new Error("no"), { closed: { kind: "refused", status: 401, ours: true } });
    const viewer = new Viewer(world, { target: () => Promise.reject(refusal) });
    await world.advance(100);
    expect(viewer.connection.state.name).toBe("needs-login");
  });

  test("4425 asks for a fresh ticket", async () => {
    const world = new World();
    const session = new Session(world);
    const asked: boolean[] = [];
    const target = ({ freshTicket }: { freshTicket: boolean }) => {
      asked.push(freshTicket);
      return { url: "ws://test/", protocols: [] };
    };
    session.refuse = closed(4425);
    new Viewer(world, { target });
    await world.advance(100);
    session.refuse = undefined;
    await world.advance(1_000);
    expect(asked).toEqual([false, true]);
  });

  test("R3: a socket that cannot say why the upgrade was refused has it explained", async () => {
    const world = new World();
    const session = new Session(world);
    session.refuse = CUT;
    const explain = vi.fn(async (): Promise<Closed> => ({ kind: "refused", status: 404, ours: true }));
    const viewer = new Viewer(world, { target: () => ({ url: "ws://test/", protocols: [], explain }) });
    await world.advance(100);
    expect(viewer.connection.state).toMatchObject({ name: "gone", why: "unknown" });
    expect(explain).toHaveBeenCalledTimes(1);
  });

  test("a socket that cannot be made is reported", async () => {
    const world = new World();
    world.dialled = () => {
      throw new SyntaxError("bad URL");
    };
    const viewer = new Viewer(world);
    await world.advance(100);
    expect(viewer.errors).toMatchObject([{ source: "socket", message: "no socket could be made: bad URL" }]);
    expect(viewer.connection.state.name).toBe("reconnecting");
  });

  test("the browser's key is in the hello of each dial, also after a new login", async () => {
    let key = "one";
    const target = () => ({ url: "ws://test/", protocols: [], key });
    const { world, session } = await attached({ target });
    key = "two";
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(session.hellos.map((hello) => hello.key)).toEqual(["one", "two"]);
    expect(session.hellos.map((hello) => hello.conn)).toEqual([1, 2]);
  });
});

describe("typing", () => {
  test("R16: keys typed offline are delivered once on return within 30 s", async () => {
    const { world, session, viewer, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    expect(connection.input("ls\n")).toBe(3);
    expect(connection.waiting).toBe(3);
    await world.advance(20_000);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("ls\n");
    expect(viewer.unsent).toEqual([]);
    expect(connection.waiting).toBe(0);
  });

  test("R16: later they are unsent, until the user sends or discards them", async () => {
    const { world, session, viewer, connection } = await attached();
    const away = async (keys: string) => {
      session.refuse = CUT;
      world.live[0]!.cut(CUT);
      connection.input(keys);
      await world.advance(40_000);
      session.refuse = undefined;
      world.signal("online");
      await world.advance(100);
    };
    await away("rm -r x\n");
    expect(session.typed).toEqual([]);
    expect(viewer.unsent.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(["rm -r x\n"]);
    connection.discardUnsent();
    await away("ls\n");
    connection.sendUnsent();
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("ls\n");
  });

  test("R16: away twice, a second report has all that is undecided, and one decision is about all of it", async () => {
    const { world, session, viewer, connection } = await attached();
    for (const keys of ["rm ", "-r x\n"]) {
      session.refuse = CUT;
      world.live[0]!.cut(CUT);
      connection.input(keys);
      await world.advance(40_000);
      session.refuse = undefined;
      world.signal("online");
      await world.advance(100);
    }
    expect(viewer.unsent.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(["rm ", "rm -r x\n"]);
    connection.sendUnsent();
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("rm -r x\n");
  });

  test("R16: what is kept is bounded, and the caller is told", async () => {
    const world = new World();
    const session = new Session(world);
    session.refuse = CUT;
    const { connection } = new Viewer(world);
    expect(connection.input(new Uint8Array(300_000))).toBe(256 << 10);
    expect(connection.input("x")).toBe("full");
  });

  test("nothing is typed into another life of the session", async () => {
    const { world, session, viewer, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    connection.input("y\n");
    session.restart();
    session.refuse = undefined;
    await world.advance(2_000);
    expect(session.typed).toEqual([]);
    expect(viewer.unsent).toHaveLength(1);
    expect(viewer.told).toContain("attached snapshot");
  });

  test("a large paste goes in frames that the server takes", async () => {
    const { world, session, connection } = await attached();
    const paste = Array.from({ length: 100_000 }, (_, i) => i % 251);
    expect(connection.input(Uint8Array.from(paste))).toBe(100_000);
    await world.advance(1_000);
    expect(session.typed).toEqual(paste);
  });
});

describe("dispose", () => {
  test.each(["connecting", "open", "reconnecting", "offline"])("R15: removes every listener and timer when %s", async (when) => {
    const world = new World();
    const session = new Session(world);
    if (when === "reconnecting" || when === "offline") session.refuse = CUT;
    const viewer = new Viewer(world, { backoff: { base: 500, cap: 500, tries: when === "offline" ? 0 : 5 } });
    if (when !== "connecting") await world.advance(100);
    expect(viewer.connection.state.name).toBe(when);
    const codes: number[] = [];
    world.peer = { ...world.peer, opened: () => {}, received: () => {}, left: (_, code) => codes.push(code) };
    viewer.connection.dispose();
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    expect(codes).toEqual(when === "open" ? [1000] : []);
    const { calls } = viewer;
    for (const socket of world.sockets) {
      socket.events.opened();
      socket.events.received('{"type":"bell"}');
      socket.events.closed(CUT);
    }
    world.signal("online");
    viewer.connection.retry();
    viewer.connection.dispose();
    viewer.connection.input("x");
    await world.advance(100_000);
    expect(viewer.calls).toBe(calls);
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    expect(viewer.connection.state.name).toBe("ended");
  });

  test("from within a callback", async () => {
    const world = new World();
    const session = new Session(world);
    session.print([1, 2, 3]);
    let told = 0;
    const viewer: Viewer = new Viewer(world, {
      on: {
        attached: () => {
          told += 1;
          viewer.connection.dispose();
        },
        snapshotBegin: () => (told += 100),
      },
    });
    await world.advance(1_000);
    expect(told).toBe(1);
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
  });
});
