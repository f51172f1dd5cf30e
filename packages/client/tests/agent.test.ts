/** A conversation over one event stream and HTTP: nothing lost, nothing repeated, nothing left behind. */
import { describe, expect, test } from "vitest";
import { ApiError } from "../src/index.js";
import { CUT } from "./sim/attached.js";
import { A, B, openJournals } from "./sim/conversations.js";
import { description } from "./sim/gateway.js";
import { piece } from "./sim/journal.js";
import type { Reader } from "./sim/reader.js";

describe("a conversation", () => {
  test("R40: begins with the last page, continues with what follows, and pages back on demand", async () => {
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
      const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, read } = openJournals();
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
      const { world, journal, gateway, read } = openJournals();
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
    const { world, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, gateway, read } = openJournals();
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
    const { world, gateway, read } = openJournals();
    await world.advance(100);
    gateway.failure = new ApiError(429, "too_many", "slow down", { fromGateway: true, retryAfter: 60_000 });
    const reader = read(A, { backoff: { base: 500, cap: 10_000, tries: 0 } });
    await world.advance(100);
    expect(reader.connection.state).toEqual({ name: "offline", reason: "slow down" });
    world.signal("online");
    await world.advance(59_000);
    expect([gateway.requests.length, reader.connection.state.name]).toEqual([1, "reconnecting"]);
    await world.advance(1_000);
    expect(gateway.requests).toHaveLength(2);
  });

  test.each(["wake", "retry"])("a request that hangs is repeated by a %s, unless it has just begun", async (how) => {
    const { world, journal, gateway, read } = openJournals();
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
    const { world, journal, gateway, events, read } = openJournals();
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
    const { world, gateway, read } = openJournals();
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
    const { world, gateway, read } = openJournals();
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
    const { world, journal, gateway, read } = openJournals();
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
    const { world, gateway, read } = openJournals();
    gateway.failure = failure;
    const reader = read();
    await world.advance(100);
    expect(reader.connection.state).toEqual({ name: "gone", why, reason: failure.message });
    world.signal("visible");
    await world.advance(100_000);
    expect([gateway.requests.length, gateway.watched]).toEqual([1, []]);
  });

  test("a 404 of a proxy is not the end", async () => {
    const { world, journal, gateway, read } = openJournals();
    gateway.failure = new ApiError(404, "http", "HTTP status 404");
    const reader = read();
    await world.advance(100);
    gateway.failure = undefined;
    await world.advance(2_000);
    reader.expectUpToDate(journal, "behind the proxy");
  });

  test("a session that is forgotten is gone, also if that was while the line was cut", async () => {
    for (const cut of [false, true]) {
      const { world, gateway, read } = openJournals(A, B);
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
      const { world, gateway, read } = openJournals();
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
      const { world, journal, gateway, read } = openJournals(A, B);
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
    const { world, journal, gateway, read } = openJournals();
    journal.verdict = () => ({ verdict: "snapshot", reason: "epoch", seq: journal.end });
    read();
    await world.advance(10_000);
    expect(gateway.requests.length).toBeLessThan(10);
  });

  test("a page that does not have all its events is requested again", async () => {
    const { world, journal, gateway, read } = openJournals();
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
