/** Every bound of the client, in one place: what it limits, and what happens when it is reached. Times are in milliseconds. */

/** Silence after which a side pings, until the server says otherwise. */
export const HEARTBEAT = 20_000;
/** Typed bytes in flight; more waits for an acknowledgement. */
export const INPUT_WINDOW = 64 << 10;
/** The longest input frame; the server closes on a longer one. */
export const INPUT_FRAME = 16 << 10;
/** Commands without an answer; another one is refused to the caller. */
export const COMMANDS = 64;
/** The viewer acknowledges output each time it has rendered this much... */
export const RENDERED_EVERY = 16 << 10;
/** ...and when it has rendered nothing more for this long. */
export const RENDERED_IDLE = 20;
/**
 * Typed bytes a client keeps: unacknowledged, typed offline, or waiting for the user's decision. Input that does not fit whole is
 * refused to the caller.
 */
export const OUTBOX = 8 << 20;
/** Longest absence after which kept input is still sent by itself; later it is reported unsent. */
export const UNSENT_AFTER = 30_000;
/** Unacknowledged input and silence for this long start a probe. */
export const PROBE_AFTER = 3_000;
/** A probe unanswered for this long ends the connection. */
export const PROBE_WITHIN = 2_000;
/** A hello without `attached` (or `welcome`) for this long ends the connection. */
export const ATTACHED_WITHIN = 15_000;
/** Received and not yet polled; past it the connection is dropped, for the other end ignores the window. */
export const UNPOLLED = 64 << 20;
/** Being attached this long makes a connection good: the next failure starts at the first backoff step. */
export const GOOD_AFTER = 10_000;
/** A dial that is neither open nor failed after this long has failed; that includes finding out where to dial. */
export const DIAL_WITHIN = 15_000;
/** The longest wait that the other end may ask for with `Retry-After` or `retry_after`; more counts as this much. */
export const LONGEST_PATIENCE = 300_000;
/** How often a page that nobody looks at may dial. */
export const HIDDEN_EVERY = 60_000;
/** Asleep this long, an open connection is not probed but dialled again. */
export const LONG_SLEEP = 45_000;
/** A timer this late means that the machine slept, and so that no open connection is to be believed. */
export const LATE = 5_000;

/** 2.25 heartbeats: the silence that means death. */
export function death(heartbeat: number): number {
  return (heartbeat * 9) / 4;
}
