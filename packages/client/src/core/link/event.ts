/** The events that the link passes to its driver. */
import type { Attached, ExitStatus, Missed, Reason, Scope, ServerMessage, Size } from "../wire.js";
import type { Unsent } from "./outbox.js";

/** The state of a link: without a connection, waiting for `attached`, attached, or ended for good. */
export type ClientState = "detached" | "greeting" | "attached" | "ended";

/** The messages that are passed on unchanged. */
export type Notice = Extract<
  ServerMessage,
  { type: "title" | "cwd" | "notify" | "url" | "bell" | "presence" | "accepted" | "rejected" | "error" }
>;

/** An event for the viewer. Events must be applied in order. */
export type ClientEvent =
  /** The server answered the hello. Without a snapshot, the terminal gets its size now; otherwise the snapshot follows. */
  | { readonly kind: "attached"; readonly attached: Attached }
  /** A snapshot begins. Resize the terminal; with scope `all`, reset it first. */
  | {
      readonly kind: "snapshot_begin";
      readonly reason: Reason;
      readonly scope: Scope;
      readonly missed: Missed | undefined;
      readonly offset: number;
      readonly size: Size;
      readonly bytes: number;
    }
  /** Part of a snapshot, to be written to the terminal. */
  | { readonly kind: "snapshot_part"; readonly bytes: Uint8Array }
  /** The snapshot is complete. Call `handleRendered` once the terminal has processed it. */
  | { readonly kind: "snapshot_end"; readonly offset: number }
  /** Output, to be written to the terminal. */
  | { readonly kind: "output"; readonly offset: number; readonly bytes: Uint8Array }
  /** Resize the terminal. */
  | { readonly kind: "resize"; readonly size: Size }
  /** The program exited; there is no more output. */
  | { readonly kind: "exit"; readonly status: ExitStatus; readonly offset: number }
  /** The server announced the code with which it closes this connection, for transports without close codes. */
  | { readonly kind: "closing"; readonly code: number; readonly reason: string }
  /** A title, a notification, presence, the answer to a command, an error. */
  | { readonly kind: "message"; readonly message: Notice }
  /** Typed bytes that were not sent, because the session was restarted or the connection was lost for too long. */
  | { readonly kind: "unsent"; readonly unsent: Unsent }
  /** A command that was not repeated, for the same reasons. It may have been accepted. */
  | { readonly kind: "command_unsent"; readonly id: string }
  | { readonly kind: "state"; readonly state: ClientState };

/** Whether the next connection sends this again if it is dropped now. */
export function isReplayed(event: ClientEvent): boolean {
  switch (event.kind) {
    case "attached":
    case "snapshot_begin":
    case "snapshot_part":
    case "snapshot_end":
    case "output":
    case "resize":
      return true;
    default:
      return false;
  }
}

/** The number of terminal bytes in the event. */
export function byteLength(event: ClientEvent): number {
  return event.kind === "snapshot_part" || event.kind === "output" ? event.bytes.length : 0;
}
