/** Pages that are hidden, frozen or asleep: when their connections are checked and replaced. */
import { describe, expect, test } from "vitest";
import type { Target } from "../src/index.js";
import { attached, CUT } from "./sim/attached.js";
import { settle } from "./sim/world.js";

describe("wakes", () => {
  test("R13: several signals in one turn cause one dial, and build one target", async () => {
    let targets = 0;
    const target = async (): Promise<Target> => {
      targets += 1;
      return { url: "ws://test/", protocols: [] };
    };
    const { world, session, connection } = await attached({ target, backoff: { base: 500, cap: 1000, tries: 1 } });
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    await world.advance(10_000);
    expect(connection.state.name).toBe("offline");
    session.refuse = undefined;
    const before = targets;
    for (const signal of ["resumed", "restored", "visible", "online", "online"] as const) world.signal(signal);
    connection.retry();
    await world.advance(100);
    expect(targets).toBe(before + 1);
    expect(connection.state.name).toBe("open");
  });

  test("R11, R23: a page that is left closes its connection for good, and connects again when it is restored", async () => {
    const { world, session, viewer } = await attached();
    const codes: number[] = [];
    const { closed } = world.peer;
    world.peer.closed = (socket, code) => {
      codes.push(code);
      closed.call(world.peer, socket, code);
    };
    world.signal("left");
    expect(codes).toEqual([1000]);
    session.print([4]);
    // The page is in the back/forward cache, so its timers stand still.
    world.frozen = true;
    await world.advance(3_000);
    expect(world.sockets).toHaveLength(1);
    world.frozen = false;
    world.signal("restored");
    await world.advance(100);
    expect(world.sockets).toHaveLength(2);
    expect(viewer.connection.state.name).toBe("open");
    expect(viewer.shown).toEqual([1, 2, 3, 4]);
  });

  test("R12: a socket that seems open after a sleep is probed, and replaced after 2 s of silence", async () => {
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
    expect(viewer.stateNames.at(-1)).toBe("open");
  });

  test("R12: a socket that answers the probe is kept", async () => {
    const { world } = await attached();
    world.frozen = true;
    await world.advance(30_000);
    world.frozen = false;
    world.signal("visible");
    await world.advance(10_000);
    expect(world.sockets).toHaveLength(1);
  });

  test("R12: after a long freeze the connection is replaced at once", async () => {
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

  test("opening a closed laptop wakes the connection, even if the page gets no signal", async () => {
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

  test("R11: a hidden page dials once a minute; when it becomes visible, at once", async () => {
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
    expect(viewer.stateNames.at(-1)).toBe("open");
  });

  test("R11, R12: a page resumed while hidden replaces a dead connection at once, then dials once a minute", async () => {
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

  test("R11: a hidden page whose connection answered a probe and is cut later waits a minute to dial", async () => {
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

  test("R11: a dial that began before a sleep and fails is repeated at once", async () => {
    const { world, session, viewer } = await attached();
    session.unresponsive = true;
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(world.sockets).toHaveLength(2);
    world.hidden = true;
    world.signal("hidden");
    world.frozen = true;
    await world.advance(3_600_000);
    world.frozen = false;
    session.unresponsive = false;
    world.signal("resumed");
    await world.advance(100);
    expect(world.sockets).toHaveLength(3);
    expect(viewer.stateNames.at(-1)).toBe("open");
  });

  test("R11: a hidden page that is online again dials once, then once a minute", async () => {
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
