/** The board's order. */
import type { SessionInfo } from "@bowline/client";
import { isOver, type Need, needOf, type SeenBoard } from "../state/seen.ts";

/** A session on the board. */
export interface Entry {
  readonly session: SessionInfo;
  readonly need: Need | undefined;
}

/** The board in three parts, each with the latest first: who needs you, what runs, what ended. */
export interface Parts {
  readonly needing: readonly Entry[];
  readonly running: readonly Entry[];
  readonly ended: readonly Entry[];
}

/** Sorts the board. What runs is sorted by its name where one was given, so that rows do not jump about while programs print. */
export function partsOf(sessions: Iterable<SessionInfo>, seen: SeenBoard): Parts {
  const entries = Array.from(sessions, (session): Entry => ({ session, need: needOf(session, seen[session.id]) }));
  const byName = (a: Entry, b: Entry) =>
    Number(a.session.name === null) - Number(b.session.name === null) ||
    (a.session.name ?? "").localeCompare(b.session.name ?? "", undefined, { numeric: true }) ||
    latest(a, b);
  const latest = (a: Entry, b: Entry) =>
    b.session.created.localeCompare(a.session.created) || a.session.id.localeCompare(b.session.id);
  const calls = (a: Entry, b: Entry) =>
    (b.session.call?.at ?? "").localeCompare(a.session.call?.at ?? "") || latest(a, b);
  return {
    needing: entries.filter((entry) => entry.need).sort(calls),
    running: entries.filter((entry) => !entry.need && !isOver(entry.session)).sort(byName),
    ended: entries.filter((entry) => !entry.need && isOver(entry.session)).sort(latest),
  };
}
