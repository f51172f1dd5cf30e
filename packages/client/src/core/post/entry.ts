/** An entry: a command on its way to a session, and how far it has come. */
import type { Code, Outcome, SessionId } from "../wire.js";

/** A command: something for a session to do once. PROTOCOL.md lists the types and their fields. */
export interface Command {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A command on its way to a session. */
export interface PostEntry {
  /** The id of the command. Every try has the same. */
  readonly id: string;
  /** Empty if the entry could not be read. */
  readonly session: SessionId;
  /** `undefined` if the entry could not be read. */
  readonly command: Command | undefined;
  /** When the user made the entry or sent it again, in milliseconds since 1970. */
  readonly made: number;
  /** Entries are sent in this order. It is near the time of the entry, but grows even if the clock is set back. */
  readonly order: number;
  readonly state: PostState;
}

/**
 * How far an entry has come.
 *
 * - `waiting`: for what `why` says.
 * - `sending`: a request is under way; `tries` failed before.
 * - `retrying`: the last of `tries` failed because of `message`; the next one follows `at` that time, in milliseconds since 1970.
 * - `delivered`: settled, as `how` says.
 * - `failed`: nothing happens until the user sends the entry again or discards it.
 */
export type PostState =
  | { readonly name: "waiting"; readonly why: WaitReason }
  | { readonly name: "sending"; readonly tries: number }
  | { readonly name: "retrying"; readonly at: number; readonly tries: number; readonly message: string }
  | ({ readonly name: "delivered" } & Delivery)
  | ({ readonly name: "failed" } & Failure);

/**
 * What an entry waits for: entries before it (`turn`), the user to send or discard a failed entry before it (`held`), a login,
 * or the network.
 */
export type WaitReason = "turn" | "held" | "login" | "offline";

/** How an entry was settled. */
export type Delivery =
  /** The session recorded the command, as the number `seq` of its journal. */
  | { readonly how: "accepted"; readonly seq: number; readonly run?: string }
  /** The approval was closed before. The command had no effect. Without `by`, no client answered it. */
  | { readonly how: "already_answered"; readonly outcome?: Outcome; readonly by?: string }
  /** The run had ended before. The command had no effect. */
  | { readonly how: "not_running" };

/** Why an entry failed. `message` is for people: what the server said, or why the last try failed. It may be empty. */
export type Failure =
  /** The server refused the command; it would refuse it again. */
  | { readonly reason: "refused"; readonly code: Code; readonly message: string }
  /**
   * - `session_gone`: the session has ended. Restart it, then send the entry again.
   * - `no_space`: the disk or the session's journal is full.
   * - `expired`: it could not be sent within ten minutes.
   * - `old`: it was made more than ten minutes ago, and the page was closed, hidden or asleep since.
   * - `unreadable`: it was stored by a newer version, or is damaged. It can only be discarded, unless its session is known.
   */
  | {
      readonly reason: "session_gone" | "no_space" | "expired" | "old" | "unreadable";
      readonly message: string;
    };

/**
 * Which entries of a session wait for each other. In the `ordered` lane, each entry waits for those before it. Aborts and answers to
 * approvals are `urgent`: they never wait for a prompt, or for another that is to be sent again.
 */
export type Lane = "ordered" | "urgent";

const URGENT: readonly unknown[] = ["abort", "approve", "deny", "answer"];

/** The lane of a command. What could not be read holds nothing. */
export function laneOf(command: Command | undefined): Lane {
  return command === undefined || URGENT.includes(command.type) ? "urgent" : "ordered";
}
