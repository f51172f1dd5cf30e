/** An entry in the queue, the times of its tries, and whose turn it is. */
import {
  type Command,
  type Delivery,
  type Failure,
  type Lane,
  laneOf,
  type PostEntry,
  type PostState,
} from "./entry.js";
import { MAX_BYTES, MAX_ENTRIES, MAX_SESSION_ENTRIES, SEND_WITHIN } from "./limits.js";

/** What the queue does with an entry; its state is what the user sees of it. */
export type Phase =
  /** To be sent as soon as nothing prevents it. */
  | { readonly name: "ready" }
  /** Until a response comes, or the time `until`. */
  | { readonly name: "in-flight"; readonly attempt: number; readonly until: number }
  /** For the next try at `at`. The gateway requested none before `notBefore`, not even on a wake. */
  | { readonly name: "waiting"; readonly at: number; readonly notBefore: number }
  | { readonly name: "delivered"; readonly delivery: Delivery }
  | { readonly name: "failed"; readonly failure: Failure };

export const READY: Phase = { name: "ready" };

/** An entry, and what the queue knows about it. */
export interface Item {
  /** Replaced when it changes. */
  entry: PostEntry;
  readonly lane: Lane;
  /** The length of the command as JSON; 0 if it could not be read. */
  readonly bytes: number;
  phase: Phase;
  /** Tries that failed, as shown to the user. */
  tries: number;
  /** Tries that failed since the last wake, for the backoff. */
  failures: number;
  /** Why the last try failed. */
  lastError: string;
  /** The driver knows the entry. */
  shown: boolean;
}

/** Why a command was not taken: a limit, an invalid id, session or command, or an id that is in the queue already. */
export type SendError = "session_full" | "full" | "too_many_bytes" | "too_long" | "invalid" | "id_in_use";

/** The bytes of a command as JSON; `undefined` if JSON cannot represent it. */
export function jsonLength(command: Command | undefined): number | undefined {
  try {
    const json = JSON.stringify(command) as string | undefined;
    return json === undefined ? undefined : new TextEncoder().encode(json).length;
  } catch {
    return undefined;
  }
}

export function newItem(entry: PostEntry, bytes: number): Item {
  const { state, command } = entry;
  let phase = READY;
  if (state.name === "failed") {
    const { name: _, ...failure } = state;
    phase = { name: "failed", failure };
  }
  return { entry, lane: laneOf(command), bytes, phase, tries: 0, failures: 0, lastError: "", shown: false };
}

/** When the ten minutes of an entry are over. */
export function expires({ entry }: Item): number {
  return entry.made + SEND_WITHIN;
}

/** Fails an entry whose ten minutes are over. */
export function fail(item: Item, reason: "expired" | "old"): void {
  item.phase = { name: "failed", failure: { reason, message: item.lastError } };
}

/** Where a lane of a session is counted. */
export function laneKey({ entry, lane }: Item): string {
  return `${lane} ${entry.session}`;
}

/** The limit that an item would exceed, and whether only entries of its session can make room. */
export function exceeded(items: readonly Item[], added: Item): { error: SendError; session: boolean } | undefined {
  const lane = items.filter((item) => item.lane === added.lane);
  const session = lane.filter((item) => item.entry.session === added.entry.session);
  if (session.length >= MAX_SESSION_ENTRIES) return { error: "session_full", session: true };
  if (lane.length >= MAX_ENTRIES) return { error: "full", session: false };
  const bytes = lane.reduce((sum, item) => sum + item.bytes, added.bytes);
  return bytes > MAX_BYTES ? { error: "too_many_bytes", session: false } : undefined;
}

/** The states of all entries, in their order. */
export function statesOf(items: readonly Item[], needsLogin: boolean, offline: boolean): PostState[] {
  const [unsettled, failed] = [new Set<string>(), new Set<string>()];
  return items.map((item) => {
    const { phase, tries } = item;
    const { session } = item.entry;
    const ordered = item.lane === "ordered";
    const [isHeld, isBehind] = [ordered && failed.has(session), ordered && unsettled.has(session)];
    if (ordered && phase.name === "failed") failed.add(session);
    else if (ordered && phase.name !== "delivered") unsettled.add(session);
    switch (phase.name) {
      case "delivered":
        return { name: "delivered", ...phase.delivery };
      case "failed":
        return { name: "failed", ...phase.failure };
      case "in-flight":
        return { name: "sending", tries };
      case "ready":
      case "waiting":
        if (isHeld) return { name: "waiting", why: "held" };
        if (needsLogin) return { name: "waiting", why: "login" };
        if (offline) return { name: "waiting", why: "offline" };
        if (phase.name === "ready" || isBehind) return { name: "waiting", why: "turn" };
        return { name: "retrying", at: phase.at, tries, message: item.lastError };
    }
  });
}
