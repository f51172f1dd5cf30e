/** Positions against fixtures/follow/position.json, which is what the Rust followers do; and watches. */
import { describe, expect, test } from "vitest";
import { Feed, Position } from "../src/core/index.js";
import { load } from "./vectors.js";

describe("follow/position.json", () => {
  test.each(load("follow/position.json").transcripts as any[])("R40: $name", ({ config, steps }) => {
    const position = new Position(config.cursor);
    for (const [i, step] of steps.entries()) {
      expect(act(position, step.do), `step ${i}: ${JSON.stringify(step.do)}`).toEqual(step.then);
    }
  });

  test("a number above 2^53 - 1 is refused, not rounded", () => {
    const cursor = { epoch: "00000001", offset: Number.MAX_SAFE_INTEGER };
    const position = new Position(cursor);
    expect(position.handleRecord({ seq: cursor.offset, event: null })).toBe("an event with an invalid range");
    expect(position.cursor).toEqual(cursor);
  });
});

describe("a watch that is paused, started again or ended", () => {
  const session = "aaaaaaaaaaaa";
  const epoch = "00000001";

  /** A feed that watches the session from event 5 on. */
  function watching() {
    const feed = new Feed();
    const watch = feed.addWatch(session)!;
    feed.startWatch(watch, { epoch, offset: 5 });
    feed.handleConnected(0);
    const receive = (message: object) => feed.handleFrame(JSON.stringify(message), 0);
    receive({ type: "welcome", client: "00000000-0000-4000-8000-000000000001", epoch, version: "", heartbeat: 1000 });
    expect(feed.pollTransmit(0)).toMatchObject({ kind: "send" });
    return { feed, watch, receive };
  }

  /** A feed that has received an answer and an event, which were not polled. */
  function received() {
    const { feed, watch, receive } = watching();
    receive({ type: "watched", session, epoch, seq: 5, verdict: "exact" });
    receive({ type: "event", session, seq: 5, at: "", event: null });
    const types = () => Array.from({ length: 9 }, () => feed.pollEvent()?.type).filter((type) => type !== undefined);
    return { feed, watch, types };
  }

  test("an event before the verdict closes the connection, and is not delivered", () => {
    const { feed, receive } = watching();
    receive({ type: "event", session, seq: 5, at: "", event: null });
    expect(feed.pollTransmit(0)).toEqual({ kind: "close", code: 4400, reason: "an event before the verdict" });
    expect([feed.pollEvent()?.type, feed.pollEvent()]).toEqual(["welcome", undefined]);
  });

  test.each([
    ["paused", (feed: Feed, watch: number) => feed.pauseWatch(watch), []],
    ["started again", (feed: Feed, watch: number) => feed.startWatch(watch, { epoch, offset: 2 }), []],
    ["ended", (feed: Feed, watch: number) => feed.removeWatch(watch), []],
    ["superseded", (feed: Feed) => void feed.addWatch(session), ["superseded"]],
    ["none of it", () => {}, ["watched", "record"]],
  ])("delivers nothing that was received before: %s", (_, change, expected) => {
    const { feed, watch, types } = received();
    change(feed, watch);
    expect(types()).toEqual(["welcome", ...expected]);
  });
});

function act(position: Position, action: any): any {
  const { verdict, record } = action;
  const error = verdict
    ? position.handleVerdict(verdict.verdict, verdict.epoch, verdict.offset)
    : position.handleRecord(record);
  return { cursor: position.cursor ?? null, ...(error === undefined ? {} : { error }) };
}
