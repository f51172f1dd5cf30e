/** A terminal that stays attached to one session over any number of connections. */
import type { Backoff } from "../core/backoff.js";
import type {
  Attached,
  ClientId,
  Cursor,
  ExitStatus,
  Lag,
  Missed,
  Present,
  Reason,
  Scope,
  Size,
  Theme,
  You,
} from "../core/wire.js";
import type { Environment, TargetBuilder } from "./environment.js";
import type { ConnectionState } from "./state.js";

/** What a terminal is told, in the order in which it is to be applied. Everything is optional. */
export interface TerminalCallbacks {
  /** The state changed. Called once for each change. */
  state?(state: ConnectionState): void;
  /**
   * The session answered. With verdict `exact`, output goes on where it stopped and nothing is to be reset; the terminal has
   * `size` from here on. With `snapshot`, `snapshotBegin` follows.
   */
  attached?(attached: Attached): void;
  /** A snapshot begins: after what was written before, give the terminal `size`; with scope `all`, reset it first. */
  snapshotBegin?(snapshot: SnapshotStart): void;
  /** Bytes of a snapshot, for the terminal. */
  snapshotPart?(bytes: Uint8Array): void;
  /** The snapshot is whole. Call `rendered` once the terminal took it; without this callback it counts as rendered. */
  snapshotEnd?(offset: number, rendered: () => void): void;
  /**
   * Output, for the terminal. Call `rendered` once the terminal took it (xterm.js: `write(bytes, rendered)`): only then is it
   * acknowledged, and only so much is in flight. Without this callback it counts as rendered.
   */
  output?(bytes: Uint8Array, offset: number, rendered: () => void): void;
  /** The terminal has this size from here on, after what was written before. */
  resize?(size: Size): void;
  /** The terminal's title. */
  title?(title: string): void;
  /** The shell's directory. */
  cwd?(cwd: string): void;
  /** A notification from the program; the title may be empty. */
  notify?(title: string, body: string): void;
  /** A link was printed; `open` when it looks like a login that waits for the user. */
  url?(url: string, open: boolean): void;
  /** The bell rang. */
  bell?(): void;
  /** Who is here, and what this viewer may do and is. */
  presence?(clients: readonly Present[], you: You): void;
  /** A command was taken, or refused for good, or (`unsent`) not repeated after a long absence: it may have been taken. */
  command?(id: string, outcome: CommandOutcome): void;
  /** The program ended; there is no more output. State `ended` follows. */
  exit?(status: ExitStatus, offset: number): void;
  /** Typed bytes that are not sent by themselves: see `sendUnsent` and `discardUnsent`. */
  unsent?(unsent: Unsent): void;
  /** Something was wrong: a failing URL builder, a socket that cannot be made, an `error` of the server. For people and logs. */
  error?(error: ConnectionError): void;
}

/** How a snapshot begins. */
export interface SnapshotStart {
  readonly reason: Reason;
  readonly scope: Scope;
  /** Output that is never seen as bytes. */
  readonly missed: Missed | undefined;
  /** Where output goes on. */
  readonly offset: number;
  /** The size in force there. */
  readonly size: Size;
  /** Its length. */
  readonly bytes: number;
}

/** Typed bytes that wait for the user's word. */
export interface Unsent {
  /** The bytes, oldest first. */
  readonly bytes: Uint8Array;
  /** This many of them, from the front, had been sent, and may or may not have been typed. */
  readonly doubtful: number;
}

/** What became of a command. */
export type CommandOutcome =
  | { readonly kind: "accepted"; readonly seq: number; readonly duplicate: boolean }
  | { readonly kind: "rejected"; readonly code: string; readonly message: string }
  | { readonly kind: "unsent" };

/** What went wrong beside the connection's state: `target` (the URL builder), `socket`, `server` (its `error` message). */
export interface ConnectionError {
  readonly source: "target" | "socket" | "server";
  /** A problem code, where the server gave one. */
  readonly code?: string;
  readonly message: string;
  readonly cause?: unknown;
}

/** Why typed bytes were not taken: the outbox (256 KiB) is full, the viewer may not type, the session is over. */
export type NotTaken = "full" | "read-only" | "ended";

/** What a terminal connection is made of. */
export interface TerminalOptions {
  /** The world; `browserEnvironment()` in a page. */
  readonly environment: Environment;
  /** Where to dial: `api.attachTarget(session)`. */
  readonly target: TargetBuilder;
  /** What it tells. */
  readonly on: TerminalCallbacks;
  /** This page load or program run; `newClientId()` by default. Never store it: a duplicated tab is another client. */
  readonly client?: ClientId;
  /** The id before a page reload; inherits the ownership of the size. */
  readonly was?: ClientId;
  /** Where to go on, for a terminal that already shows what came before. */
  readonly cursor?: Cursor;
  /** The size of the window. Without one, this viewer never owns the size. */
  readonly size?: Size;
  /** Become the size owner at once. */
  readonly claimSize?: boolean;
  /** What to do when it cannot keep up; `skip` by default. */
  readonly lag?: Lag;
  /** Lines of scrollback in a whole snapshot; 1000 by default. */
  readonly scrollback?: number;
  /** Look only. */
  readonly observe?: boolean;
  /** What the program's colour queries are answered. */
  readonly theme?: Theme;
  /** When to dial again; `BROWSER` by default. */
  readonly backoff?: Backoff;
}

/** A terminal that stays attached to one session over any number of connections. It dials as soon as it is made. */
export declare class TerminalConnection {
  constructor(options: TerminalOptions);
  /** This client. */
  readonly client: ClientId;
  /** The state. */
  get state(): ConnectionState;
  /** What this viewer may do and is, as far as it knows. */
  get you(): You;
  /** Where the terminal is; nothing before the first snapshot is whole. */
  get cursor(): Cursor | undefined;
  /** Typed bytes that the session has not taken yet. */
  get waiting(): number;
  /** Keys were typed, or text was pasted. Kept while there is no connection; returns how many bytes were taken, or why none. */
  input(data: Uint8Array | string): number | NotTaken;
  /** The window has this size now. The terminal follows only on the session's word (`resize`, `snapshotBegin`, `attached`). */
  resize(size: Size): void;
  /** Become the size owner, with this size. */
  claimSize(size: Size): void;
  /** Ask for the visible screen again, because something local covered it. */
  repaint(): void;
  /** Do something once. Returns the command's id, or why it was not taken. `on.command` tells what became of it. */
  command(command: unknown, id?: string): { id: string } | NotTaken;
  /** Type what was reported unsent after all. */
  sendUnsent(): void;
  /** Forget what was reported unsent. */
  discardUnsent(): void;
  /** Try again now: the user asked, or has logged in. */
  retry(): void;
  /** Leave for good: removes every listener and timer, and calls nothing back any more. */
  dispose(): void;
}

