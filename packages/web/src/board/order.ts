/** Sorts the sessions on the board into sections. */
import type { SessionInfo } from "@bowline/client";
import { type AttentionReason, attentionReason, hasEnded, type ViewRecords } from "../state/attention.ts";

export interface BoardEntry {
  readonly session: SessionInfo;
  /** Why it needs attention, if it does. */
  readonly reason: AttentionReason | undefined;
}

export interface BoardSections {
  /** Those with approvals first, the one that has waited longest on top; then the others, latest call first. */
  readonly attention: readonly BoardEntry[];
  /** By name, so that rows do not move while programs print; sessions without a name last, latest first. */
  readonly running: readonly BoardEntry[];
  /** Latest first. */
  readonly ended: readonly BoardEntry[];
}

export function boardSections(sessions: Iterable<SessionInfo>, records: ViewRecords): BoardSections {
  const entries = Array.from(sessions, (session): BoardEntry => ({
    session,
    reason: attentionReason(session, records[session.id]),
  }));
  const byName = (a: BoardEntry, b: BoardEntry) =>
    Number(a.session.name === null) - Number(b.session.name === null) ||
    (a.session.name ?? "").localeCompare(b.session.name ?? "", undefined, { numeric: true }) ||
    byCreation(a, b);
  const byCreation = (a: BoardEntry, b: BoardEntry) =>
    b.session.created.localeCompare(a.session.created) || a.session.id.localeCompare(b.session.id);
  const byNeed = (a: BoardEntry, b: BoardEntry) => waitingSince(a).localeCompare(waitingSince(b)) || byCall(a, b);
  const byCall = (a: BoardEntry, b: BoardEntry) =>
    (b.session.call?.at ?? "").localeCompare(a.session.call?.at ?? "") || byCreation(a, b);
  return {
    attention: entries.filter((entry) => entry.reason).sort(byNeed),
    running: entries.filter((entry) => !entry.reason && !hasEnded(entry.session)).sort(byName),
    ended: entries.filter((entry) => !entry.reason && hasEnded(entry.session)).sort(byCreation),
  };
}

/** Since when an agent waits for an answer; after all times if it does not. */
function waitingSince({ reason }: BoardEntry): string {
  return (reason?.kind === "approval" && reason.approvals[0]?.at) || "9999";
}
