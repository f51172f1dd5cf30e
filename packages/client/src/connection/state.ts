/** The state of a connection, and the errors it reports. */
import type { PermanentFailure } from "../core/close.js";
import type { SessionId } from "../core/wire.js";

/**
 * The state of a connection.
 *
 * - `connecting`: the first attempt is under way.
 * - `open`: attached.
 * - `reconnecting`: the connection was lost. Attempt number `attempt` (from 1) starts in `delay` milliseconds; 0 if it is
 *   under way.
 * - `offline`: all attempts failed; `reason` is why the last one did, for people. A wake (the page is visible or online again) or `retry()` starts again.
 * - `needs-login`: log in, then call `retry()`. A wake does nothing.
 * - `ended`: final. The session exited, the connection was disposed of, or the same client attached elsewhere. A conversation
 *   goes on when its session exits; it ends when the session is opened again on the same event stream.
 * - `gone`: final. Connecting can never succeed, for the reason in `why`.
 *
 * The other states' `reason` is the server's own text, possibly empty.
 */
export type ConnectionState =
  | { readonly name: "connecting" }
  | { readonly name: "open" }
  | { readonly name: "reconnecting"; readonly attempt: number; readonly delay: number }
  | { readonly name: "offline"; readonly reason: string }
  | { readonly name: "needs-login"; readonly reason: string }
  | { readonly name: "ended"; readonly reason: string }
  | { readonly name: "gone"; readonly why: PermanentFailure; readonly reason: string };

export type ConnectionStateName = ConnectionState["name"];

/**
 * An error to log or to show. What it means for the connection is in the connection's state.
 *
 * - `target`: the target builder failed or took too long.
 * - `socket`: the WebSocket could not be created.
 * - `server`: the server sent an `error` message.
 * - `session`: the description of a session could not be parsed.
 * - `history`: a page of a conversation could not be read.
 */
export interface ConnectionError {
  readonly source: "target" | "socket" | "server" | "session" | "history";
  /** The problem code, if the server sent one. */
  readonly code?: string;
  /** With `source` `history`; and with `session`, if at least its id could be parsed. */
  readonly session?: SessionId;
  readonly message: string;
  readonly cause?: unknown;
}
