/**
 * Which sessions need attention: an agent waits for an answer, or this device has not viewed a bell, a notification or an end yet.
 *
 * Nothing here compares clocks. A call is identified by the time its session gave it, a run of a session by its epoch.
 */
import type { Approval, SessionInfo } from "@bowline/client";

/** What this device last viewed of a session. */
export interface ViewRecord {
  /** The `at` of the last call that was viewed. */
  readonly call?: string;
  /** The last epoch that this device has seen running. */
  readonly epoch?: string;
  /** Whether the end of that epoch was viewed. */
  readonly ended?: boolean;
}

/** View records by session id. */
export type ViewRecords = Readonly<Record<string, ViewRecord>>;

/** Why a session needs attention. */
export type AttentionReason =
  /** What the agent waits for, oldest first; at least one. */
  | { readonly kind: "approval"; readonly approvals: readonly Approval[] }
  | { readonly kind: "bell" }
  | { readonly kind: "notify"; readonly text: string }
  | { readonly kind: "ended" };

/**
 * Returns why a session needs attention, if it does. An open approval needs an answer, so to view it is not enough. An end counts
 * only if this device has seen that epoch running.
 */
export function attentionReason(session: SessionInfo, record: ViewRecord | undefined): AttentionReason | undefined {
  const approvals = openApprovals(session);
  if (approvals.length > 0) return { kind: "approval", approvals };
  if (hasEnded(session) && record?.epoch === session.epoch && !record.ended) return { kind: "ended" };
  const call = session.call;
  if (!call || call.at === record?.call) return undefined;
  return call.kind === "bell" ? { kind: "bell" } : { kind: "notify", text: call.text };
}

/** Updates the records for a complete board; records of sessions that are not on it are dropped. */
export function recordBoard(records: ViewRecords, sessions: readonly SessionInfo[]): ViewRecords {
  return Object.fromEntries(
    sessions.map((session) => [session.id, recordUpdate(records[session.id], session)] as const),
  );
}

/** Updates the record for one received session: notes the epoch if the session is running. */
export function recordUpdate(record: ViewRecord | undefined, session: SessionInfo): ViewRecord {
  if (hasEnded(session) || record?.epoch === session.epoch) return record ?? {};
  return { ...(record?.call === undefined ? {} : { call: record.call }), epoch: session.epoch };
}

/** Returns the record of a session that the user is viewing: everything in it counts as viewed. */
export function recordView(session: SessionInfo): ViewRecord {
  const ended = hasEnded(session);
  return { ...(session.call ? { call: session.call.at } : {}), epoch: session.epoch, ...(ended ? { ended } : {}) };
}

/** Parses stored records; malformed ones are dropped. */
export function parseViewRecords(stored: string | undefined): ViewRecords {
  try {
    const found: unknown = JSON.parse(stored ?? "{}");
    if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
    return Object.fromEntries(
      Object.entries(found).filter(([, record]) => typeof record === "object" && record !== null),
    );
  } catch {
    return {};
  }
}

/** The approvals of a session that wait for an answer, oldest first. A lost session lists some that cannot be answered any more. */
export function openApprovals(session: SessionInfo): readonly Approval[] {
  return hasEnded(session) ? [] : (session.approvals ?? []);
}

/** Whether a session has ended. A state added by a newer version does not count as ended. */
export function hasEnded({ state }: SessionInfo): boolean {
  return state === "exited" || state === "lost";
}
