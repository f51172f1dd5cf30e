/** What a viewer is told: the vocabulary between the client machine and its driver. */
import type { Attached, ExitStatus, Missed, Reason, Scope, ServerMessage, Size } from "../wire.js";
import type { Unsent } from "./outbox.js";

/** Where a viewer's link is: without a connection, waiting for `attached`, attached, or over for good. */
export type ClientState = "detached" | "greeting" | "attached" | "ended";

/** The messages that are passed on as they are. */
export type Notice = Extract<
  ServerMessage,
  { type: "title" | "cwd" | "notify" | "url" | "bell" | "presence" | "event" | "accepted" | "rejected" | "error" }
>;

/** What the viewer is to show or to know, in the order in which it is to be applied. */
export type ClientEvent =
  /** The server answered the hello. The terminal has its size from here on; for a snapshot, its parts follow. */
  | { readonly kind: "attached"; readonly attached: Attached }
  /** A snapshot begins. Give the terminal this size; with scope `all`, reset it first. */
  | {
      readonly kind: "snapshot_begin";
      readonly reason: Reason;
      readonly scope: Scope;
      readonly missed: Missed | undefined;
      readonly offset: number;
      readonly size: Size;
      readonly bytes: number;
    }
  /** Bytes of a snapshot, for the terminal. */
  | { readonly kind: "snapshot_part"; readonly bytes: Uint8Array }
  /** A snapshot is whole. Tell the machine once the terminal took it. */
  | { readonly kind: "snapshot_end"; readonly offset: number }
  /** Output, for the terminal. */
  | { readonly kind: "output"; readonly offset: number; readonly bytes: Uint8Array }
  /** The terminal has this size from here on. */
  | { readonly kind: "resize"; readonly size: Size }
  /** The program ended; there is no more output. */
  | { readonly kind: "exit"; readonly status: ExitStatus; readonly offset: number }
  /** The server said, on a transport without close codes, with which one it closes this connection. */
  | { readonly kind: "closing"; readonly code: number; readonly reason: string }
  /** Titles, notifications, presence, answers to commands, errors. */
  | { readonly kind: "message"; readonly message: Notice }
  /** Typed bytes that were not sent: the session is another, or too much time has passed. */
  | { readonly kind: "unsent"; readonly unsent: Unsent }
  /** A command that was not resent, for the same reasons. It may have been taken. */
  | { readonly kind: "command_unsent"; readonly id: string }
  /** The state changed. */
  | { readonly kind: "state"; readonly state: ClientState };

/** Belongs to one connection's stream, and comes again on the next. */
export function isStream(event: ClientEvent): boolean {
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

/** The bytes it holds. */
export function weight(event: ClientEvent): number {
  return event.kind === "snapshot_part" || event.kind === "output" ? event.bytes.length : 0;
}
