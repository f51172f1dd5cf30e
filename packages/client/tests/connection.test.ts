/** A terminal connection in a fake environment: output, callbacks, exit and dispose. */
import { describe, expect, test } from "vitest";
import { attached, CUT, closed } from "./sim/attached.js";
import { Session } from "./sim/session.js";
import { Viewer } from "./sim/viewer.js";
import { World } from "./sim/world.js";

describe("a connection", () => {
  test("R9, R22: shows a snapshot, then output; after a cut exactly the missed output, without a reset", async () => {
    const { world, session, viewer } = await attached();
    expect(viewer.shown).toEqual([1, 2, 3]);
    world.live[0]!.cut(CUT);
    session.print([4, 5]);
    await world.advance(2_000);
    expect(viewer.shown).toEqual([1, 2, 3, 4, 5]);
    expect(viewer.events).toEqual(["attached snapshot", "snapshot all", "attached exact"]);
    expect(viewer.stateNames).toEqual(["open", "reconnecting", "open"]);
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

  test("output that is rendered after a reconnect is not acknowledged on the new connection", async () => {
    const { world, session, viewer } = await attached();
    viewer.slow = true;
    session.print([4, 5, 6]);
    await world.advance(100);
    const late = viewer.rendering.splice(0);
    // The log lost its end, so the next connection starts before the output that was shown.
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

  test("after an incomplete snapshot, the next hello has no cursor", async () => {
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

  test("passes on the messages of the session", async () => {
    const { world, session, viewer, connection } = await attached();
    viewer.events.length = 0;
    session.broadcast({ type: "title", title: "make" });
    session.broadcast({ type: "cwd", cwd: "/tmp" });
    session.broadcast({ type: "notify", title: "", body: "done" });
    session.broadcast({ type: "url", url: "https://example.com/", open: true });
    session.broadcast({ type: "bell" });
    session.broadcast({ type: "presence", clients: [{ client: connection.client, write: true, size: false }] });
    session.broadcast({ type: "error", code: "not_allowed", message: "no", fatal: false });
    expect(connection.command({ type: "signal", name: "INT" }, "c1")).toEqual({ id: "c1" });
    connection.claimSize({ cols: 5000, rows: 30 });
    await world.advance(100);
    expect(viewer.events).toEqual([
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

  test("R15: exit ends it for good, and a wake does not reconnect", async () => {
    const { world, session, viewer, connection } = await attached();
    session.end(3);
    await world.advance(100);
    expect(viewer.events.at(-1)).toBe("exit 3");
    expect(connection.state.name).toBe("ended");
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    connection.retry();
    await world.advance(100_000);
    expect(world.sockets).toHaveLength(1);
    expect(connection.input("x")).toBe("ended");
  });

  test("the reason of a close frame is the state's reason", async () => {
    const { world, session, connection } = await attached();
    session.refuse = closed(4403, "this token may not");
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(connection.state).toEqual({ name: "gone", why: "not_allowed", reason: "this token may not" });
  });

  test("an exception in a callback is reported by the runtime and does not stop the connection", async () => {
    const thrown: unknown[] = [];
    const record = (error: unknown) => thrown.push(error);
    const before = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", record);
    try {
      const world = new World();
      new Session(world);
      const boom = new Error("the page's own bug");
      const viewer = new Viewer(world, {
        on: {
          state: () => {
            throw boom;
          },
        },
      });
      await world.advance(100);
      expect(viewer.connection.state.name).toBe("open");
      expect(thrown).toEqual([boom]);
    } finally {
      process.removeListener("uncaughtException", record);
      for (const listener of before) process.on("uncaughtException", listener);
    }
  });
});

describe("dispose", () => {
  test.each(["connecting", "open", "reconnecting", "offline"])(
    "R15: removes every listener and timer when %s",
    async (when) => {
      const world = new World();
      const session = new Session(world);
      if (when === "reconnecting" || when === "offline") session.refuse = CUT;
      const viewer = new Viewer(world, { backoff: { base: 500, cap: 500, tries: when === "offline" ? 0 : 5 } });
      if (when !== "connecting") await world.advance(100);
      expect(viewer.connection.state.name).toBe(when);
      const codes: number[] = [];
      world.peer = { ...world.peer, opened: () => {}, received: () => {}, closed: (_, code) => codes.push(code) };
      viewer.connection.dispose();
      expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
      expect(codes).toEqual(when === "open" ? [1000] : []);
      const { activity } = viewer;
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
      expect(viewer.activity).toBe(activity);
      expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
      expect(viewer.connection.state.name).toBe("ended");
    },
  );

  test("works from within a callback", async () => {
    const world = new World();
    const session = new Session(world);
    session.print([1, 2, 3]);
    let calls = 0;
    const viewer: Viewer = new Viewer(world, {
      on: {
        attached: () => {
          calls += 1;
          viewer.connection.dispose();
        },
        snapshotBegin: () => (calls += 100),
      },
    });
    await world.advance(1_000);
    expect(calls).toBe(1);
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
  });
});
