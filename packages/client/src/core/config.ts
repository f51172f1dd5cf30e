/** All limits of the client: what each one bounds, and what happens when it is reached. Times are in milliseconds. */

/** Silence after which each side pings, until the server announces another value. */
export const HEARTBEAT = 20_000;
/** Unacknowledged input in flight; more input waits for an acknowledgement. */
export const INPUT_WINDOW = 64 << 10;
/** The longest input frame; the server closes the connection on a longer one. */
export const INPUT_FRAME = 16 << 10;
/** Commands without an answer; another one is refused. */
export const COMMANDS = 64;
/** Output is acknowledged each time this much was rendered... */
export const RENDERED_EVERY = 16 << 10;
/** ...or when nothing more was rendered for this long. */
export const RENDERED_IDLE = 20;
/**
 * Typed bytes that a client keeps: unacknowledged, typed offline, or unsent until the user decides. Input that does not fit as
 * a whole is refused.
 */
export const OUTBOX = 8 << 20;
/** Input is still sent automatically after being disconnected for this long; after that it is reported as unsent. */
export const UNSENT_AFTER = 30_000;
/** With unacknowledged input, silence for this long starts a probe: a ping that must be answered soon. */
export const PROBE_AFTER = 3_000;
/** A probe without an answer for this long ends the connection. */
export const PROBE_WITHIN = 2_000;
/** No `attached` (or `welcome`) for this long after the hello ends the connection. */
export const ATTACHED_WITHIN = 15_000;
/** Bytes received and not yet polled. Beyond this the connection is dropped, because the other end ignores the window. */
export const UNPOLLED = 64 << 20;
/** A connection that was attached for this long was good: after it, the backoff starts again at its first step. */
export const GOOD_AFTER = 10_000;
/** A dial that has not opened after this long has failed. The time includes building its target. */
export const DIAL_WITHIN = 15_000;
/** The longest wait that `Retry-After` or `retry_after` can cause; a longer one counts as this much. */
export const MAX_RETRY_AFTER = 300_000;
/** The shortest interval between the dials of a hidden page. */
export const HIDDEN_EVERY = 60_000;
/** After a sleep this long, an open connection is replaced without a probe. */
export const LONG_SLEEP = 45_000;
/** A timer this late means that the machine slept, so an open connection may be dead. */
export const LATE = 5_000;

/** Sessions that an event stream watches; another watch is refused. The gateway's limit is the same. */
export const WATCHES = 64;
/** Past epochs that a conversation remembers. A description of an older one counts as news if a repair cut events off it. */
export const PAST_EPOCHS = 64;

/** Tool calls that a conversation's state has and that have not ended; the oldest is dropped. The server's limit is the same. */
export const OPEN_TOOLS = 64;
/** The longest id of such a tool call, in bytes; one with a longer id is not in the state. */
export const CALL_ID = 256;
/** Characters of a tool's title; the rest is cut off. */
export const TOOL_TITLE = 200;

/** Silence after which a connection counts as dead: 2.25 heartbeats. */
export function silenceLimit(heartbeat: number): number {
  return (heartbeat * 9) / 4;
}
