/** The inbox: the open approvals of all sessions, and those that were just closed. A plain module. */
import { type Approval, type EventRecord, type Outcome, readRecord, type SessionInfo } from "@bowline/client";
import { approvalsText, nameOf } from "../session/text.ts";
import { openApprovals } from "../state/attention.ts";
import { approvalKey } from "./answer.ts";

/** An approval that waits for an answer. */
export interface OpenApproval {
  readonly key: string;
  /** The session's id. */
  readonly session: string;
  /** The session's name, for people. */
  readonly name: string;
  readonly approval: Approval;
}

/** An approval in the inbox. */
export interface InboxItem extends OpenApproval {
  /** Since when it is closed, in milliseconds since 1970, and how it was. */
  readonly closed?: { readonly at: number; readonly text: string };
}

/** The open approvals of all sessions, oldest first. */
export function openList(sessions: Iterable<SessionInfo>): OpenApproval[] {
  return [...sessions]
    .flatMap((session) =>
      openApprovals(session).map((approval) => ({
        key: approvalKey(session.id, approval.id),
        session: session.id,
        name: nameOf(session),
        approval,
      })),
    )
    .sort(byAge);
}

function byAge(a: OpenApproval, b: OpenApproval): number {
  return a.approval.at.localeCompare(b.approval.at) || a.key.localeCompare(b.key, undefined, { numeric: true });
}

/** What a card says until it is known who answered. */
export const ANSWERED_ELSEWHERE = "Answered elsewhere";
/** How long a closed card stays, in milliseconds. */
export const CLOSED_MS = 6000;
/** The same while the pointer is over the cards: what goes moves what is about to be pressed. */
export const CLOSED_BUSY_MS = 15_000;

/** The inbox after a change of the board. Cards keep their places, and those that are not open any more say so. */
export function nextItems(items: readonly InboxItem[], open: readonly OpenApproval[], now: number): InboxItem[] {
  const unlisted = new Map(open.map((item) => [item.key, item]));
  const next = items.map((item): InboxItem => {
    const still = unlisted.get(item.key);
    unlisted.delete(item.key);
    return still ?? { closed: { at: now, text: ANSWERED_ELSEWHERE }, ...item };
  });
  for (const item of unlisted.values()) {
    const at = next.findIndex((other) => byAge(item, other) < 0);
    next.splice(at < 0 ? next.length : at, 0, item);
  }
  return next;
}

/** The inbox after it became known how an approval was closed. It stays for as long as if it had been closed now. */
export function withText(items: readonly InboxItem[], key: string, text: string, now: number): InboxItem[] {
  return items.map((item) => (item.key === key && item.closed ? { ...item, closed: { at: now, text } } : item));
}

/** The inbox without the cards that were closed for long enough; the same array if there are none. */
export function withoutOld(items: readonly InboxItem[], now: number, busy: boolean): readonly InboxItem[] {
  const stay = busy ? CLOSED_BUSY_MS : CLOSED_MS;
  const left = items.filter(({ closed }) => !closed || now - closed.at < stay);
  return left.length === items.length ? items : left;
}

/** How an approval was closed, if one of the events says so. */
export function findResolution(
  events: readonly EventRecord[],
  approval: string,
): { readonly outcome: Outcome; readonly by: string | undefined } | undefined {
  for (const record of [...events].reverse()) {
    const { event } = readRecord(record);
    if (event.type === "approval_resolved" && event.approval === approval)
      return { outcome: event.outcome, by: event.by };
  }
  return undefined;
}

/** What screen readers say about new approvals; there is at least one. */
export function announcement(added: readonly OpenApproval[]): string {
  const [first] = added;
  if (!first || added.length > 1) return `${added.length} approvals needed`;
  return `Approval needed: ${first.name}: ${approvalsText([first.approval])}`;
}
