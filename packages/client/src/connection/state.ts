/** What a user sees of a connection. */
import type { Permanent } from "../core/close.js";
import type { SessionId } from "../core/wire.js";

/**
 * The state of a connection.
 *
 * - `connecting`: the first dial.
 * - `open`: attached.
 * - `reconnecting`: lost; try number `attempt` (from 1) is made in `delay` milliseconds from now, 0 when it is being made.
 * - `offline`: the tries are used up. A wake or `retry()` starts again.
 * - `needs-login`: log in, then `retry()`. A wake does nothing.
 * - `ended`: the session exited, the connection was disposed of, or the same client attached elsewhere. For good.
 * - `gone`: it will never work, and `why`. For good.
 *
 * `reason` is the server's own words, possibly empty.
 */
export type ConnectionState =
  | { readonly name: "connecting" }
  | { readonly name: "open" }
  | { readonly name: "reconnecting"; readonly attempt: number; readonly delay: number }
  | { readonly name: "offline" }
  | { readonly name: "needs-login"; readonly reason: string }
  | { readonly name: "ended"; readonly reason: string }
  | { readonly name: "gone"; readonly why: Permanent; readonly reason: string };

/** The name of a state. */
export type ConnectionStateName = ConnectionState["name"];

/**
 * What went wrong beside the connection's state: `target` (the URL builder), `socket`, `server` (its `error` message), `session`
 * (a description of a session that cannot be read).
 */
export interface ConnectionError {
  readonly source: "target" | "socket" | "server" | "session";
  /** A problem code, where the server gave one. */
  readonly code?: string;
  /** The session that cannot be read, where at least its id can. */
  readonly session?: SessionId;
  readonly message: string;
  readonly cause?: unknown;
}
