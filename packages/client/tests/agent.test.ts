/** A conversation over one event stream and HTTP: nothing lost, nothing repeated, nothing left behind. */
import { describe, expect, test } from "vitest";
import { ApiError, EventsConnection, isNewer } from "../src/index.js";
import { CUT } from "./sim/attached.js";
import { description, Gateway } from "./sim/gateway.js";
import { Journal, piece } from "./sim/journal.js";
import { Reader } from "./sim/reader.js";
import { type FakeSocket, World } from "./sim/world.js";

const A = "aaaaaaaaaaaa";
const B = "bbbbbbbbbbbb";

function open(...ids: string[]) {
  const world = new World();
  const journals = (ids.length ? ids : [A]).map((id) => new Journal(id));
  for (const journal of journals) for (let i = 0; i < 9; i++) journal.append(piece(String(i)));
  const gateway = new Gateway(world, ...journals);
  const stream = () =>
    new EventsConnection({
      environment: world.environment,
      target: () => ({ url: "ws://test/", protocols: [] }),
      on: {},
    });
  const events = stream();
  const read = (session = A, more = {}) => new Reader(world, gateway, events, session, more);
  return { world, journal: journals[0]!, journals, gateway, events, read, stream };
}

describe("a conversation", () => {
  test("R40: begins with the last page, continues with what follows, and pages back on demand", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    expect(reader.stateNames).toEqual(["open"]);
    expect([reader.start, reader.end, reader.connection.hasOlder]).toEqual([6, 10, true]);
    expect(gateway.messages).toEqual([
      { type: "watch", sessions: [{ id: A, cursor: { epoch: journal.epoch, offset: 10 } }] },
    ]);
    journal.append(piece("x"), { type: "title", title: "Fix it" });
    gateway.pump();
    await world.advance(100);
    expect([reader.end, reader.conversation?.title]).toEqual([12, "Fix it"]);
    // Twice at once is one page.
    const both = [reader.connection.older(), reader.connection.older()];
    await world.advance(100);
    await Promise.all(both);
    expect(reader.start).toBe(2);
    void reader.connection.older();
    await world.advance(100);
    expect([reader.start, reader.connection.hasOlder]).toEqual([0, false]);
    await reader.connection.older();
    reader.expectUpToDate(journal, "whole");
    expect([reader.resets, gateway.requests.length]).toEqual([1, 3]);
  });

  test("R40: a cut resumes at the event after the last one, without reading history again", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read();
    await world.advance(100);
    world.live[0]!.cut(CUT);
    journal.append(piece("x"), piece("y"));
    await world.advance(2_000);
    reader.expectUpToDate(journal, "resumed");
    expect(gateway.requests).toHaveLength(1);
    expect(gateway.messages.at(-1)).toEqual({
      type: "watch",
      sessions: [{ id: A, cursor: { epoch: journal.epoch, offset: 10 } }],
    });
    expect(reader.stateNames).toEqual(["open", "reconnecting", "reconnecting", "open"]);
  });

  test("goes on when the session starts again, over the same watch", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read();
    await world.advance(100);
    journal.append({ type: "exit", code: 0, signal: null });
    gateway.pump();
    await world.advance(100);
    expect(reader.conversation?.exit).toEqual({ code: 0, signal: null });
    journal.restart();
    gateway.pump();
    await world.advance(100);
    expect(reader.conversation?.exit).toBeUndefined();
    reader.expectUpToDate(journal, "in its second life");
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(gateway.messages.at(-1).sessions[0].cursor.epoch).toBe(journal.epoch);
    expect([reader.resets, gateway.requests.length]).toEqual([1, 1]);
  });

  test("R40: a repair that uses numbers again resets what is shown", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read();
    await world.advance(100);
    journal.repair(4);
    journal.append(piece("p"), piece("q"), piece("r"), piece("s"));
    gateway.pump();
    await world.advance(200);
    expect(reader.resets).toBe(2);
    reader.expectUpToDate(journal, "after the repair");
  });

  test("the message of a gap or a repeat never reaches the caller: the connection is replaced, and resumes", async () => {
    for (const seq of [8, 9, 11]) {
      const { world, journal, gateway, read } = open();
      const reader = read();
      await world.advance(100);
      gateway.send({ type: "event", session: A, seq, at: "", event: piece("wrong") });
      await world.advance(100);
      expect([reader.end, reader.connection.state.name]).toEqual([10, "reconnecting"]);
      await world.advance(2_000);
      reader.expectUpToDate(journal, `after ${seq}`);
    }
  });

  test("a page of older events that arrives after a reset is dropped", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    gateway.pageLatency = () => 500;
    let resolved = false;
    void reader.connection.older().then(() => (resolved = true));
    await world.advance(10);
    gateway.pageLatency = () => 5;
    journal.repair(4);
    gateway.pump();
    await world.advance(200);
    expect([reader.resets, resolved, reader.start]).toEqual([2, true, 3]);
    await world.advance(1_000);
    expect(reader.start).toBe(3);
    void reader.connection.older();
    await world.advance(100);
    reader.expectUpToDate(journal, "paged back");
    expect(reader.start).toBe(0);
  });

  test("the callback of an older page may ask for the next one", async () => {
    const { world, journal, read } = open();
    const starts: (number | undefined)[] = [];
    const reader: Reader = read(A, {
      limit: 4,
      on: {
        older: ({ records }: { records: readonly { seq: number; from?: number }[] }) => {
          starts.push(records[0]?.from ?? records[0]?.seq);
          void reader.connection.older();
        },
      },
    });
    await world.advance(100);
    void reader.connection.older();
    await world.advance(200);
    expect(starts).toEqual([journal.end - 8, 0]);
  });

  test("nothing older is read while what is shown is about to be replaced", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    gateway.pageLatency = () => 100;
    journal.repair(4);
    gateway.pump();
    await world.advance(50);
    await reader.connection.older();
    await world.advance(500);
    expect(gateway.requests.map(({ query }) => query)).toEqual([{ limit: 4 }, { limit: 4 }]);
    reader.expectUpToDate(journal, "reset");
  });

  test("a page of older events of another epoch waits until the epoch has arrived", async () => {
    const { world, journal, read } = open();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    world.live[0]!.cut(CUT);
    journal.repair(6);
    for (let i = 0; i < 20; i++) journal.append(piece("new"));
    void reader.connection.older();
    await world.advance(50);
    expect(reader.start, "numbers 2 to 5 may be other events now").toBe(6);
    expect(reader.errors.map(({ source }) => source)).toEqual(["history"]);
    await world.advance(5_000);
    reader.expectUpToDate(journal, "reset");
  });

  test("an older page that cannot be read changes no state, is given up, and can be asked for again", async () => {
    for (const status of [503, 401]) {
      const { world, journal, gateway, read } = open();
      const reader = read(A, { limit: 4 });
      await world.advance(100);
      gateway.failure = new ApiError(status, "refused", "not now", { fromGateway: true });
      let resolved = false;
      void reader.connection.older().then(() => (resolved = true));
      await world.advance(1_000);
      expect(resolved).toBe(status === 401);
      await world.advance(200_000);
      expect([resolved, reader.start, reader.stateNames]).toEqual([true, 6, ["open"]]);
      expect(new Set(reader.errors.map(({ message }) => message))).toEqual(new Set(["not now"]));
      gateway.failure = undefined;
      void reader.connection.older();
      await world.advance(100);
      expect(reader.start).toBe(2);
      reader.expectUpToDate(journal, "asked again");
    }
  });

  test("a check that fails changes no state, and is repeated", async () => {
    const { world, gateway, read } = open();
    const reader = read();
    await world.advance(100);
    gateway.failure = new ApiError(503, "unreachable", "not now", { fromGateway: true });
    gateway.forget(A);
    await world.advance(200_000);
    expect(reader.stateNames).toEqual(["open"]);
    gateway.failure = undefined;
    world.signal("visible");
    await world.advance(100);
    expect(reader.connection.state.name).toBe("gone");
  });

  test("R40: events that arrive while an older page is read are neither lost nor repeated", async () => {
    const { world, journal, gateway, read } = open();
    const reader = read(A, { limit: 4 });
    await world.advance(100);
    gateway.pageLatency = () => 50;
    void reader.connection.older();
    await world.advance(20);
    journal.append(piece("x"));
    gateway.pump();
    await world.advance(100);
    expect([reader.start, reader.end]).toEqual([2, 11]);
    reader.expectUpToDate(journal, "both ends");
  });

  test("history is tried again with backoff, at once on a wake, and gives up after a while", async () => {
    const { world, journal, gateway, read } = open();
    gateway.failure = new ApiError(503, "unreachable", "not now", { fromGateway: true });
    await world.advance(100);
    const reader = read();
    await world.advance(100);
    expect(reader.connection.state).toMatchObject({ name: "reconnecting", attempt: 1 });
    await world.advance(200_000);
    expect(reader.connection.state.name).toBe("offline");
    expect(gateway.requests).toHaveLength(13);
    gateway.failure = undefined;
    world.signal("visible");
    await world.advance(100);
    reader.expectUpToDate(journal, "awake");
  });

  test("R37: a wait that the server demanded holds on a wake", async () => {
    const { world, gateway, read } = open();
    gateway.failure = new ApiError(429, "too_many", "slow down", { fromGateway: true, retryAfter: 60_000 });
    read();
    await world.advance(100);
    world.signal("online");
    await world.advance(50_000);
    expect(gateway.requests).toHaveLength(1);
    await world.advance(11_000);
    expect(gateway.requests).toHaveLength(2);
  });

  test("R37: a wait that the server demanded with its last refusal holds on a wake, too", async () => {
    const { world, gateway, read } = open();
    await world.advance(100);
    gateway.failure = new ApiError(429, "too_many", "slow down", { fromGateway: true, retryAfter: 60_000 });
    const reader = read(A, { backoff: { base: 500, cap: 10_000, tries: 0 } });
    await world.advance(100);
    expect(reader.connection.state).toEqual({ name: "offline" });
    world.signal("online");
    await world.advance(59_000);
    expect([gateway.requests.length, reader.connection.state.name]).toEqual([1, "reconnecting"]);
    await world.advance(1_000);
    expect(gateway.requests).toHaveLength(2);
  });

  test.each(["wake", "retry"])("a request that hangs is repeated by a %s, unless it has just begun", async (how) => {
    const { world, journal, gateway, read } = open();
    gateway.pageLatency = () => 300_000;
    const reader = read();
    const again = () => (how === "wake" ? world.signal("visible") : reader.connection.retry());
    await world.advance(2_000);
    again();
    await world.advance(1_000);
    expect(gateway.requests).toHaveLength(1);
    gateway.pageLatency = () => 5;
    again();
    await world.advance(100);
    expect(gateway.requests.map(({ signal }) => signal?.aborted)).toEqual([true, false]);
    reader.expectUpToDate(journal, "on the new network");
  });

  test("a request goes on when the stream is opened, unless it began before the stream was lost", async () => {
    const { world, journal, gateway, events, read } = open();
    gateway.refuse = { kind: "failed" };
    gateway.pageLatency = () => 8_000;
    const reader = read();
    await world.advance(3_000);
    gateway.refuse = undefined;
    events.retry();
    await world.advance(3_000);
    expect([events.state.name, gateway.requests.length]).toEqual(["open", 1]);
    world.live[0]!.cut(CUT);
    gateway.pageLatency = () => 5;
    events.retry();
    await world.advance(100);
    expect(gateway.requests.map(({ signal }) => signal?.aborted)).toEqual([true, false]);
    reader.expectUpToDate(journal, "on the new network");
  });

  test("a device that goes offline is not a wake", async () => {
    const { world, gateway, read } = open();
    await world.advance(100);
    gateway.failure = new ApiError(0, "unreachable", "no network");
    const reader = read();
    await world.advance(100);
    world.signal("offline");
    expect([gateway.requests.length, reader.connection.state]).toEqual([
      1,
      { name: "reconnecting", attempt: 1, delay: 500 },
    ]);
  });

  test("says that an attempt is under way, and no longer why the last one failed", async () => {
    const { world, gateway, read } = open();
    await world.advance(100);
    gateway.failure = new ApiError(401, "not_authenticated", "log in", { fromGateway: true });
    const reader = read();
    await world.advance(100);
    gateway.failure = new ApiError(503, "unreachable", "not now", { fromGateway: true });
    gateway.pageLatency = () => 100;
    reader.connection.retry();
    expect(reader.connection.state).toEqual({ name: "reconnecting", attempt: 1, delay: 0 });
    await world.advance(650);
    const [waits, tries] = reader.states.slice(-2);
    expect(waits).toEqual({ name: "reconnecting", attempt: 1, delay: 500 });
    expect(tries, "the second attempt").toEqual({ name: "reconnecting", attempt: 1, delay: 0 });
  });

  test("needs a login, and continues after it", async () => {
    const { world, journal, gateway, read } = open();
    await world.advance(100);
    gateway.failure = new ApiError(401, "not_authenticated", "log in", { fromGateway: true });
    const reader = read();
    await world.advance(100);
    world.signal("visible");
    await world.advance(100);
    expect(reader.connection.state).toEqual({ name: "needs-login", reason: "log in" });
    expect(gateway.requests, "a wake does nothing").toHaveLength(1);
    gateway.failure = undefined;
    reader.connection.retry();
    await world.advance(100);
    reader.expectUpToDate(journal, "logged in");
  });

  test.each([
    [new ApiError(404, "unknown_session", "no such session", { fromGateway: true }), "unknown"],
    [new ApiError(403, "not_allowed", "no", { fromGateway: true }), "not_allowed"],
    [new ApiError(400, "bad_request", "a terminal has no events", { fromGateway: true }), "protocol"],
  ])("a permanent failure ends it, and says why: %s", async (failure, why) => {
    const { world, gateway, read } = open();
    gateway.failure = failure;
    const reader = read();
    await world.advance(100);
    expect(reader.connection.state).toEqual({ name: "gone", why, reason: failure.message });
    world.signal("visible");
    await world.advance(100_000);
    expect([gateway.requests.length, gateway.watched]).toEqual([1, []]);
  });

  test("a 404 of a proxy is not the end", async () => {
    const { world, journal, gateway, read } = open();
    gateway.failure = new ApiError(404, "http", "HTTP status 404");
    const reader = read();
    await world.advance(100);
    gateway.failure = undefined;
    await world.advance(2_000);
    reader.expectUpToDate(journal, "behind the proxy");
  });

  test("a session that is forgotten is gone, also if that was while the line was cut", async () => {
    for (const cut of [false, true]) {
      const { world, gateway, read } = open(A, B);
      const [reader, other] = [read(A), read(B)];
      await world.advance(100);
      if (cut) world.live[0]!.cut(CUT);
      gateway.forget(A);
      await world.advance(3_000);
      expect(reader.connection.state).toMatchObject({ name: "gone", why: "unknown" });
      expect(other.connection.state.name).toBe("open");
      expect(gateway.watched).toEqual([B]);
    }
  });

  test("a session that is forgotten while a page of it is on its way is gone", async () => {
    for (const during of ["the load", "a check"]) {
      const { world, gateway, read } = open();
      await world.advance(100);
      gateway.pageLatency = () => 500;
      const reader = read();
      if (during === "a check") {
        await world.advance(1_000);
        gateway.send({ type: "session_gone", id: A });
      }
      await world.advance(100);
      expect(gateway.requests).toHaveLength(during === "a check" ? 2 : 1);
      gateway.forget(A);
      await world.advance(2_000);
      expect(reader.connection.state, during).toMatchObject({ name: "gone", why: "unknown" });
      expect([gateway.watched, reader.resets]).toEqual([[], 1]);
    }
  });

  test.each(["a later board", "an earlier board", "a change"])(
    "a session of another machine is gone, and the reason says where it is: known from %s",
    async (source) => {
      const { world, journal, gateway, read } = open(A, B);
      const other = read(B);
      if (source !== "a change") journal.host = "attic";
      if (source !== "a later board") await world.advance(100);
      const reader = read(A);
      await world.advance(100);
      if (source === "a change") {
        journal.host = "attic";
        gateway.send({ type: "session", session: description(journal) });
        await world.advance(100);
      }
      const reason = "the session belongs to the machine attic; open it there";
      expect(reader.connection.state).toEqual({ name: "gone", why: "not_allowed", reason });
      expect([gateway.watched, other.connection.state.name]).toEqual([[B], "open"]);
      expect(gateway.requests, "nothing is read if it is known before").toHaveLength(
        source === "an earlier board" ? 1 : 2,
      );
    },
  );

  test("a server that never resumes is not asked without a pause", async () => {
    const { world, journal, gateway, read } = open();
    journal.verdict = () => ({ verdict: "snapshot", reason: "epoch", seq: journal.end });
    read();
    await world.advance(10_000);
    expect(gateway.requests.length).toBeLessThan(10);
  });

  test("a page that does not have all its events is requested again", async () => {
    const { world, journal, gateway, read } = open();
    const { history } = gateway;
    gateway.history = async (...args) => {
      const page = await history.apply(gateway, args);
      return gateway.requests.length === 1 ? { ...page, events: page.events.slice(1) } : page;
    };
    const reader = read();
    await world.advance(2_000);
    expect(reader.errors.map(({ message }) => message)).toEqual(["event 9 of the page: events are missing"]);
    reader.expectUpToDate(journal, "the second page");
  });
});

describe("many conversations on one stream", () => {
  test("R46: each has its own events, over one socket", async () => {
    const { world, journals, gateway, read } = open(A, B);
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
    const { world, journals, gateway, read } = open(...ids);
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
    const { world, gateway, read } = open(A, B);
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
    const { world, journal, gateway, read } = open();
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
    const { world, journal, gateway, read, events } = open();
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
    const { world, journal, gateway, read, events } = open();
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
    const { world, journal, gateway, read } = open();
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
    const { world, journal, gateway, read } = open();
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
    const { world, gateway, events, read } = open(A, B);
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
    const { world, journal, gateway, read } = open();
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
    const { world, events, read } = open();
    events.dispose();
    const seen: string[] = [];
    const reader: Reader = read(A, { on: { state: () => seen.push(reader.connection.state.name) } });
    expect([reader.connection.state.name, seen]).toEqual(["ended", []]);
    read(A, { on: { state: () => seen.push("disposed of") } }).connection.dispose();
    await world.advance(100);
    expect(seen).toEqual(["ended"]);
  });

  test("dispose aborts the request that is under way", async () => {
    const { gateway, read } = open();
    read().connection.dispose();
    await Promise.resolve();
    expect(gateway.requests.map(({ signal }) => signal?.aborted)).toEqual([true]);
  });

  test("R38: a duplicated tab does not evict the first: both follow the conversation", async () => {
    const { world, journal, gateway, read, stream } = open();
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

describe("R35: a description that is behind", () => {
  test("a late idle does not hide a newer run", async () => {
    const { world, journal, gateway, read } = open();
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
    const { world, journal, read } = open();
    const idle = description(journal);
    journal.restart();
    journal.append({ type: "prompt", run: "r0", command: "c", digest: "d", by: "local", text: "hi" });
    const reader = read(A, { limit: 1 });
    await world.advance(100);
    expect(reader.conversation?.activity?.run).toBe("r0");
    expect(reader.connection.isNewer(idle)).toBe(false);
  });

  test("of a life whose events have not arrived is newer, and older once they have", async () => {
    const { world, journal, gateway, read } = open();
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
    const { world, journal, gateway, read } = open();
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
    const { world, journal, gateway, read } = open();
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
    const { read, journal } = open();
    expect(read().connection.isNewer(description(journal))).toBe(true);
    expect(isNewer({ epoch: "00000001", offset: 3 }, { epoch: "00000001", offset: 2 }, [])).toBe(true);
  });
});
