/** Which descriptions of a session are newer than its conversation. */
import { describe, expect, test } from "vitest";
import { isNewer } from "../src/index.js";
import { A, openJournals } from "./sim/conversations.js";
import { description } from "./sim/gateway.js";
import { piece } from "./sim/journal.js";

describe("R35: a description that is behind", () => {
  test("a late idle does not hide a newer run", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read();
    await world.advance(100);
    const idle = description(journal);
    journal.append({ type: "prompt", run: "r0", command: "c", digest: "d", by: "local", text: "hi" });
    gateway.pump();
    await world.advance(100);
    expect(reader.conversation?.activity?.run).toBe("r0");
    expect(reader.connection.isNewer(idle)).toBe(false);
    expect(reader.connection.isNewer(description(journal)), "of the same event").toBe(false);
    journal.append(piece("x"));
    expect(reader.connection.isNewer(description(journal)), "of an event that has not arrived").toBe(true);
  });

  test("a late idle of the life before does not hide a run, although the page does not reach back to it", async () => {
    const { world, journal, read } = openJournals();
    const idle = description(journal);
    journal.restart();
    journal.append({ type: "prompt", run: "r0", command: "c", digest: "d", by: "local", text: "hi" });
    const reader = read(A, { limit: 1 });
    await world.advance(100);
    expect(reader.conversation?.activity?.run).toBe("r0");
    expect(reader.connection.isNewer(idle)).toBe(false);
  });

  test("of a life whose events have not arrived is newer, and older once they have", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    journal.restart();
    const next = description(journal);
    expect(reader.connection.isNewer(next)).toBe(true);
    gateway.pump();
    await world.advance(100);
    expect(reader.connection.isNewer(next)).toBe(false);
  });

  test("a life that begins in an unknown shape is a life: pages and descriptions of it are known", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    const before = { ...description(journal), offset: 1_000 };
    journal.restart();
    journal.events[journal.end - 1].pid = "many";
    gateway.pump();
    await world.advance(100);
    expect(reader.records.at(-1)?.event.type).toBe("unknown");
    expect(reader.connection.isNewer(before)).toBe(false);
    void reader.connection.older();
    await world.advance(100);
    expect([reader.start, reader.errors]).toEqual([2, []]);
  });

  test("of an epoch that ended with a repair is older, although it counted further", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    const lost = description(journal);
    journal.repair(4);
    const repaired = description(journal);
    expect(repaired.offset).toBeLessThan(lost.offset);
    gateway.pump();
    await world.advance(100);
    expect([lost, repaired].map((info) => reader.connection.isNewer(info))).toEqual([false, false]);
    // A page that begins with the first life is enough, too.
    const whole = read();
    await world.advance(100);
    expect(whole.connection.isNewer(lost)).toBe(false);
  });

  test("before anything was read, every description is news", () => {
    const { read, journal } = openJournals();
    expect(read().connection.isNewer(description(journal))).toBe(true);
    expect(isNewer({ epoch: "00000001", offset: 3 }, { epoch: "00000001", offset: 2 }, [])).toBe(true);
  });
});
