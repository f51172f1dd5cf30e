/** Pages that sleep, hide and wake: what is believed of a connection afterwards, and how soon it is dialled. */
import { describe, expect, test } from "vitest";
import type { Target } from "../src/index.js";
import { attached, CUT } from "./sim/attached.js";
import { settle } from "./sim/world.js";

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
