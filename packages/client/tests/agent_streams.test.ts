/** Several conversations on one event stream, and real bugs of such streams. */
import { describe, expect, test } from "vitest";
import { ApiError } from "../src/index.js";
import { CUT } from "./sim/attached.js";
import { A, B, openJournals } from "./sim/conversations.js";
import { piece } from "./sim/journal.js";
import { Reader } from "./sim/reader.js";
import { type FakeSocket } from "./sim/world.js";

describe("many conversations on one stream", () => {
  test("R46: each has its own events, over one socket", async () => {
    const { world, journals, gateway, read } = openJournals(A, B);
    const readers = [read(A), read(B)];
    await world.advance(100);
    journals[0]!.append(piece("for A"));
    journals[1]!.append(piece("for B"), piece("again"));
    gateway.pump();
    await world.advance(100);
    readers.forEach((reader, i) => reader.expectUpToDate(journals[i]!, `reader ${i}`));
    expect(world.sockets).toHaveLength(1);
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(gateway.messages.at(-1).sessions).toHaveLength(2);
  });

  test("the 65th has an error to show, and the others go on", async () => {
    const ids = Array.from({ length: 65 }, (_, n) => String(n).padStart(12, "0"));
    const { world, journals, gateway, read } = openJournals(...ids);
    const readers = ids.map((id) => read(id));
    await world.advance(200);
    const full = readers.filter((reader) => reader.connection.state.name === "gone");
    expect(full).toHaveLength(1);
    expect(full[0]!.connection.state).toMatchObject({ why: "other", reason: expect.stringMatching(/at most 64/) });
    expect(gateway.watched).toHaveLength(64);
    readers[0]!.connection.dispose();
    const again = read(ids[64]);
    await world.advance(200);
    again.expectUpToDate(journals[64]!, "in the free place");
  });

  test("what was unwatched stays unwatched, also when the line drops in between", async () => {
    const { world, gateway, read } = openJournals(A, B);
    const [a] = [read(A), read(B)];
    await world.advance(100);
    world.live[0]!.zombie = true;
    a.connection.dispose();
    await world.advance(100);
    expect(gateway.messages.map(({ type }) => type)).not.toContain("unwatch");
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(gateway.watched).toEqual([B]);
    expect(gateway.messages.at(-1)).toMatchObject({ type: "watch", sessions: [{ id: B }] });
  });

  test("a session that was unwatched just before a cut is watched again at once on the next connection", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read();
    await world.advance(100);
    reader.connection.dispose();
    await world.advance(15);
    expect(gateway.watched, "the pong is on its way").toEqual([]);
    world.live[0]!.cut(CUT);
    const again = read();
    await world.advance(2_000);
    again.expectUpToDate(journal, "on the next connection");
  });

  test("a late event of a session that was unwatched is ignored", async () => {
    const { world, journal, gateway, read, events } = openJournals();
    const reader = read();
    await world.advance(100);
    journal.append(piece("late"));
    gateway.pump();
    reader.connection.dispose();
    const { calls } = reader;
    await world.advance(100);
    expect([reader.calls, events.state.name]).toEqual([calls, "open"]);
  });

  test("watched again at once: messages of the earlier watch do not count", async () => {
    const { world, journal, gateway, read, events } = openJournals();
    read().connection.dispose();
    const first = read();
    await world.advance(30);
    // The answer to the first watch and these events are on their way.
    journal.append(piece("x"), piece("y"));
    gateway.pump();
    first.connection.dispose();
    const second = read();
    journal.append(piece("z"));
    gateway.pump();
    await world.advance(200);
    second.expectUpToDate(journal, "the second watch");
    expect([second.resets, world.sockets.length, events.state.name]).toEqual([1, 1, "open"]);
    expect(gateway.messages.map(({ type }) => type)).toEqual(["watch", "unwatch", "watch"]);
  });
});

describe("real bugs of streams", () => {
  test("a stale close handler does not remove the new stream", async () => {
    const { world, journal, gateway, read } = openJournals();
    const reader = read();
    await world.advance(100);
    const old: FakeSocket = world.live[0]!;
    const { closed } = old.events;
    old.cut(CUT);
    await world.advance(2_000);
    expect(reader.connection.state.name).toBe("open");
    closed({ kind: "code", code: 4404, reason: "", done: false });
    journal.append(piece("x"));
    gateway.pump();
    await world.advance(100);
    reader.expectUpToDate(journal, "on the new stream");
    expect(gateway.watched).toEqual([A]);
  });

  test("a stale dispose does not remove the new conversation of the same session", async () => {
    const { world, journal, gateway, read } = openJournals();
    const first = read();
    await world.advance(100);
    const second = read();
    await world.advance(100);
    expect(first.connection.state).toEqual({ name: "ended", reason: "the session was opened again" });
    first.connection.dispose();
    journal.append(piece("x"));
    gateway.pump();
    await world.advance(100);
    second.expectUpToDate(journal, "after the first was disposed of");
    expect(gateway.watched).toEqual([A]);
  });

  test("R15: observers do not leak: conversations leave no watch, listener, timer or request", async () => {
    const { world, gateway, events, read } = openJournals(A, B);
    await world.advance(100);
    const before = [world.listeners.size, world.timers.size];
    for (let i = 0; i < 50; i++) {
      const readers = [read(A), read(B, { limit: 4 }), read(A)];
      await world.advance(i % 7);
      if (i % 3 === 0) gateway.failure = new ApiError(503, "unreachable", "", { fromGateway: true });
      void readers[1]!.connection.older();
      await world.advance(i % 40);
      gateway.failure = undefined;
      const calls = readers.map((reader) => {
        reader.connection.dispose();
        return reader.calls;
      });
      expect(gateway.requests.filter(({ signal, settled }) => !settled && !signal?.aborted)).toEqual([]);
      await world.advance(i % 30);
      expect(readers.map((reader) => reader.calls)).toEqual(calls);
    }
    const { length } = gateway.requests;
    await world.advance(100);
    expect([world.listeners.size, world.timers.size, gateway.watched]).toEqual([...before, []]);
    await world.advance(100_000);
    events.dispose();
    await world.advance(100_000);
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    expect(gateway.requests).toHaveLength(length);
  });

  test("R15: nothing is called after a dispose in a callback", async () => {
    const { world, journal, gateway, read } = openJournals();
    const calls: string[] = [];
    for (const name of ["state", "reset", "events", "conversation"] as const) {
      const reader: Reader = read(A, {
        on: {
          ...Object.fromEntries(
            ["state", "reset", "events", "conversation"].map((other) => [other, () => calls.push(other)]),
          ),
          [name]: () => {
            calls.push(`${name}!`);
            reader.connection.dispose();
          },
        },
      });
      await world.advance(100);
      journal.append({ type: "title", title: name });
      gateway.pump();
      await world.advance(100);
      expect(calls.at(-1), "the one that disposed was the last").toBe(`${name}!`);
    }
    expect(calls.join(" ")).toBe(
      "reset conversation state! reset! reset conversation state events! reset conversation!",
    );
  });

  test("R15: the first state is reported when the caller has the connection, and not after a dispose", async () => {
    const { world, events, read } = openJournals();
    events.dispose();
    const seen: string[] = [];
    const reader: Reader = read(A, { on: { state: () => seen.push(reader.connection.state.name) } });
    expect([reader.connection.state.name, seen]).toEqual(["ended", []]);
    read(A, { on: { state: () => seen.push("disposed of") } }).connection.dispose();
    await world.advance(100);
    expect(seen).toEqual(["ended"]);
  });

  test("dispose aborts the request that is under way", async () => {
    const { gateway, read } = openJournals();
    read().connection.dispose();
    await Promise.resolve();
    expect(gateway.requests.map(({ signal }) => signal?.aborted)).toEqual([true]);
  });

  test("R38: a duplicated tab does not evict the first: both follow the conversation", async () => {
    const { world, journal, gateway, read, stream } = openJournals();
    const first = read();
    const second = new Reader(world, gateway, stream(), A);
    await world.advance(100);
    journal.append(piece("x"));
    gateway.pump();
    await world.advance(100);
    for (const reader of [first, second]) reader.expectUpToDate(journal, "both tabs");
    expect(gateway.watched).toEqual([A, A]);
  });
});
