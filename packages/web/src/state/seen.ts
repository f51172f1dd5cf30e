/**
 * Who needs you: what a session called for, or that it ended, and this device has not looked since.
 *
 * Nothing here compares clocks: a call is named by the time that its session gave it, a life by its epoch.
 */
import type { SessionInfo } from "@bowline/client";

/** What this device last saw of a session. */
export interface Seen {
  /** The call that was seen, by its time. */
  readonly call?: string;
  /** The life that this device has seen running. */
  readonly epoch?: string;
  /** The end of that life has been seen. */
  readonly ended?: boolean;
}

/** Seen sessions, by id. */
export type SeenBoard = Readonly<Record<string, Seen>>;

/** Why a session needs somebody. */
export type Need =
  { readonly kind: "bell" } | { readonly kind: "notify"; readonly text: string } | { readonly kind: "ended" };

/** Why a session needs somebody, if it does. */
export function needOf(session: SessionInfo, seen: Seen | undefined): Need | undefined {
  if (isOver(session) && seen?.epoch === session.epoch && !seen.ended) return { kind: "ended" };
  const call = session.call;
  if (!call || call.at === seen?.call) return undefined;
  return call.kind === "bell" ? { kind: "bell" } : { kind: "notify", text: call.text };
}

/** The board after its sessions were received: lives that run are known from now on, sessions that are gone are not kept. */
export function receive(board: SeenBoard, sessions: readonly SessionInfo[]): SeenBoard {
  return Object.fromEntries(sessions.map((session) => [session.id, meet(board[session.id], session)] as const));
}

/** One session was received. */
export function meet(seen: Seen | undefined, session: SessionInfo): Seen {
  if (isOver(session) || seen?.epoch === session.epoch) return seen ?? {};
  return { ...(seen?.call === undefined ? {} : { call: seen.call }), epoch: session.epoch };
}

/** Somebody looks at the session. */
export function look(session: SessionInfo): Seen {
  const ended = isOver(session);
  return { ...(session.call ? { call: session.call.at } : {}), epoch: session.epoch, ...(ended ? { ended } : {}) };
}

/** Reads what was kept; whatever has not the right form is not kept. */
export function readSeen(stored: string | undefined): SeenBoard {
  try {
    const found: unknown = JSON.parse(stored ?? "{}");
    if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
    return Object.fromEntries(Object.entries(found).filter(([, seen]) => typeof seen === "object" && seen !== null));
  } catch {
    return {};
  }
}

/** It ended. What is in a state of a later time is not said to have. */
export function isOver({ state }: SessionInfo): boolean {
  return state === "exited" || state === "lost";
}
