/** Tests the list of open approvals over all sessions, and the cards of those that were closed. */
import type { Approval } from "@bowline/client";
import { describe, expect, it } from "vitest";
import {
  announcement,
  ANSWERED_ELSEWHERE,
  CLOSED_BUSY_MS,
  CLOSED_MS,
  findResolution,
  type InboxItem,
  nextItems,
  openList,
  withoutOld,
  withText,
} from "../src/approvals/list.ts";
import { agentSession, approval, session } from "./session.ts";

const at = (minute: number, id: string): Approval => approval({ id, at: `2026-11-15T18:${10 + minute}:00Z` });
const keys = (items: readonly { key: string }[]) => items.map(({ key }) => key);
const open = (...approvals: [session: string, approval: Approval][]) =>
  openList(approvals.map(([id, asked]) => agentSession([asked], { id })));

describe("R36: the inbox", () => {
  it("lists the open approvals of all sessions, oldest first", () => {
    const sessions = [
      agentSession([at(3, "a9"), at(5, "a10")], { id: "one", name: "build" }),
      agentSession([at(4, "a0")], { id: "two", title: "Fix the tests" }),
      agentSession([at(1, "a0")], { id: "dead", state: "lost" }),
      session(),
    ];
    const list = openList(sessions);
    expect(keys(list)).toEqual(["one/a9", "two/a0", "one/a10"]);
    expect(list.map(({ name }) => name)).toEqual(["build", "Fix the tests", "build"]);
  });

  it("keeps the card of an approval that was closed elsewhere in its place, says so, and drops it later", () => {
    const before = nextItems([], open(["one", at(1, "a0")], ["two", at(2, "a0")]), 0);
    const closed = nextItems(before, open(["two", at(2, "a0")]), 1000);
    expect(keys(closed)).toEqual(["one/a0", "two/a0"]);
    expect(closed.map((item) => item.closed)).toEqual([{ at: 1000, text: ANSWERED_ELSEWHERE }, undefined]);
    const known = withText(closed, "one/a0", "Allowed by phone", 2000);
    expect(known[0]?.closed).toEqual({ at: 2000, text: "Allowed by phone" });
    // What was known stays known when the board changes again.
    expect(nextItems(known, open(["two", at(2, "a0")]), 3000)[0]?.closed).toEqual(known[0]?.closed);
    expect(withoutOld(known, 2000 + CLOSED_MS - 1, false)).toBe(known);
    expect(withoutOld(known, 2000 + CLOSED_MS, true)).toBe(known);
    expect(keys(withoutOld(known, 2000 + CLOSED_MS, false))).toEqual(["two/a0"]);
    expect(keys(withoutOld(known, 2000 + CLOSED_BUSY_MS, true))).toEqual(["two/a0"]);
  });

  it("puts a new approval in its place by age", () => {
    const before = nextItems([], open(["one", at(1, "a0")], ["two", at(5, "a0")]), 0);
    const after = nextItems(
      before,
      open(["one", at(1, "a0")], ["two", at(5, "a0")], ["three", at(3, "a0")], ["four", at(9, "a0")]),
      0,
    );
    expect(keys(after)).toEqual(["one/a0", "three/a0", "two/a0", "four/a0"]);
  });

  it("opens the card again if the board lists the approval again", () => {
    const items: InboxItem[] = nextItems(nextItems([], open(["one", at(1, "a0")]), 0), [], 1);
    expect(items[0]?.closed).toBeDefined();
    expect(nextItems(items, open(["one", at(1, "a0")]), 2)[0]?.closed).toBeUndefined();
    expect(withText(nextItems(items, open(["one", at(1, "a0")]), 2), "one/a0", "late", 3)[0]?.closed).toBeUndefined();
  });

  it("finds out by whom an approval was answered", () => {
    const record = (seq: number, event: unknown) => ({ seq, at: "2026-11-15T18:00:00Z", event });
    const source = { command: "c", digest: "0123456789abcdef", by: "phone" };
    const events = [
      record(1, { type: "approval_resolved", approval: "a0", outcome: "allowed", option: "once", ...source }),
      record(2, { type: "approval_resolved", approval: "a1", outcome: "withdrawn" }),
      record(3, { type: "something_new", approval: "a0" }),
      record(4, 7),
    ];
    expect(findResolution(events, "a0")).toEqual({ outcome: "allowed", by: "phone" });
    expect(findResolution(events, "a1")).toEqual({ outcome: "withdrawn", by: undefined });
    expect(findResolution(events, "a2")).toBeUndefined();
  });

  it("R54: is announced in words", () => {
    const list = open(["one", at(1, "a0")], ["two", at(5, "a0")]);
    expect(announcement(list)).toBe("2 approvals needed");
    expect(announcement(openList([agentSession([at(1, "a0")], { name: "build" })]))).toBe(
      "Approval needed: build: Asks to run: npm test",
    );
  });
});
