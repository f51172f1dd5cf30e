/** Keys that are typed while there is no connection. */
import { describe, expect, test } from "vitest";
import { newClientId } from "../src/index.js";
import { OUTBOX } from "../src/core/config.js";
import { attached, CUT } from "./sim/attached.js";
import { Session } from "./sim/session.js";
import { Viewer } from "./sim/viewer.js";
import { World } from "./sim/world.js";

describe("typing", () => {
  test("R16: keys typed offline are delivered once after a reconnect within 30 s", async () => {
    const { world, session, viewer, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    expect(connection.input("ls\n")).toBeUndefined();
    expect(connection.queuedBytes).toBe(3);
    await world.advance(20_000);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("ls\n");
    expect(viewer.unsent).toEqual([]);
    expect(connection.queuedBytes).toBe(0);
  });

  test("R16: after a longer absence they are unsent, until the user sends or discards them", async () => {
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

  test("R16: keys typed into a dead connection just before a long sleep are unsent afterwards", async () => {
    const { world, session, viewer, connection } = await attached();
    world.live[0]!.zombie = true;
    connection.input("rm -r x\n");
    await world.advance(1_000);
    world.frozen = true;
    await world.advance(3_600_000);
    world.frozen = false;
    world.signal("resumed");
    await world.advance(100);
    expect(connection.state.name).toBe("open");
    expect(session.typed).toEqual([]);
    expect(viewer.unsent.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(["rm -r x\n"]);
  });

  test("R16: keys typed into a dead connection just before a short sleep are delivered once", async () => {
    const { world, session, viewer, connection } = await attached();
    world.live[0]!.zombie = true;
    connection.input("ls\n");
    await world.advance(1_000);
    world.frozen = true;
    await world.advance(20_000);
    world.frozen = false;
    world.signal("resumed");
    await world.advance(3_000);
    expect(Buffer.from(session.typed).toString()).toBe("ls\n");
    expect(viewer.unsent).toEqual([]);
  });

  test("R16: after a second absence, the report has all unsent bytes, and one decision covers all of them", async () => {
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

  test("R16: kept input is bounded, including unsent bytes, and a paste that does not fit is refused as a whole", async () => {
    const { world, session, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    expect(connection.input(new Uint8Array(OUTBOX + 1))).toBe("full");
    expect(connection.queuedBytes).toBe(0);
    expect(connection.input(new Uint8Array(OUTBOX - 1))).toBeUndefined();
    expect(connection.input("xy")).toBe("full");
    expect(connection.input("x")).toBeUndefined();
    await world.advance(40_000);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect([connection.state.name, connection.queuedBytes, connection.unsent?.bytes.length]).toEqual([
      "open",
      0,
      OUTBOX,
    ]);
    expect(connection.input("x")).toBe("full");
    connection.discardUnsent();
    expect([connection.input("x"), connection.unsent]).toEqual([undefined, undefined]);
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("x");
  });

  test("R16: a paste larger than the window is unsent as a whole, and keys typed after a reconnect are sent at once", async () => {
    const { world, session, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    const paste = "the head and the tail ".repeat(10_000);
    connection.input(paste);
    await world.advance(40_000);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    connection.input("q");
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("q");
    connection.sendUnsent();
    await world.advance(1_000);
    expect(Buffer.from(session.typed).toString() === `q${paste}`).toBe(true);
  });

  test("R16: unsent bytes of a disposed connection can be passed to the next one", async () => {
    const { world, session, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    connection.input("rm ");
    connection.dispose();
    expect(Buffer.from(connection.unsent!.bytes).toString()).toBe("rm ");
    connection.sendUnsent();
    expect(connection.unsent, "sendUnsent() has no effect after dispose()").toBeDefined();

    const next = new Viewer(world, { client: newClientId(), unsent: connection.unsent });
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect([next.connection.state.name, session.typed]).toEqual(["open", []]);
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    next.connection.input("-r x\n");
    await world.advance(40_000);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect(next.unsent.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(["rm -r x\n"]);
    next.connection.sendUnsent();
    await world.advance(100);
    expect(Buffer.from(session.typed).toString()).toBe("rm -r x\n");
  });

  test("R16: bytes sent by sendUnsent() before the first attach become unsent again if it takes too long", async () => {
    const world = new World();
    const session = new Session(world);
    session.refuse = CUT;
    const { connection } = new Viewer(world, { unsent: { bytes: Uint8Array.of(97), doubtful: 0 } });
    connection.sendUnsent();
    expect([connection.queuedBytes, connection.unsent]).toEqual([1, undefined]);
    await world.advance(40_000);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect([session.typed, connection.unsent?.bytes]).toEqual([[], Uint8Array.of(97)]);
  });

  test("R16: bytes sent by sendUnsent() before the first attach are sent, however long the page has been open", async () => {
    const world = new World();
    world.now = 1_000_000;
    const session = new Session(world);
    const { connection } = new Viewer(world, { unsent: { bytes: Uint8Array.of(97), doubtful: 0 } });
    connection.sendUnsent();
    await world.advance(100);
    expect([session.typed, connection.unsent]).toEqual([[97], undefined]);
  });

  test("keys are not typed into a restarted session", async () => {
    const { world, session, viewer, connection } = await attached();
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    connection.input("y\n");
    session.restart();
    session.refuse = undefined;
    await world.advance(2_000);
    expect(session.typed).toEqual([]);
    expect(viewer.unsent).toHaveLength(1);
    expect(viewer.events).toContain("attached snapshot");
  });

  test("a large paste is sent in frames that the server accepts", async () => {
    const { world, session, connection } = await attached();
    const paste = Array.from({ length: 100_000 }, (_, i) => i % 251);
    expect(connection.input(Uint8Array.from(paste))).toBeUndefined();
    await world.advance(1_000);
    expect(session.typed).toEqual(paste);
  });
});
