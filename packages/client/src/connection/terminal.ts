/** A terminal attached to one session, over as many connections as it takes. */
import type { Backoff } from "../core/backoff.js";
import { clampSize, newClientId } from "../core/ids.js";
import { Client, type SubmitError } from "../core/link/client.js";
import type { ClientEvent, Notice } from "../core/link/event.js";
import type { Unsent } from "../core/link/outbox.js";
import type {
  Attached,
  ClientId,
  Cursor,
  ExitStatus,
  Lag,
  Missed,
  PresenceEntry,
  Reason,
  Scope,
  Size,
  Theme,
  Permissions,
} from "../core/wire.js";
import { safely } from "./callback.js";
import { Driver } from "./driver.js";
import type { Environment, TargetBuilder } from "./environment.js";
import type { ConnectionError, ConnectionState } from "./state.js";

/** Callbacks, in the order in which they must be applied to the terminal. All of them are optional. */
export interface TerminalCallbacks {
  /** Called once for each change of state. */
  state?(state: ConnectionState): void;
  /**
   * The session accepted the connection. With verdict `exact`, output continues where it stopped: do not reset the terminal,
   * only give it `size`. With verdict `snapshot`, `snapshotBegin` follows.
   */
  attached?(attached: Attached): void;
  /** A snapshot begins. Once all earlier output is written, resize the terminal to `size`; with scope `all`, reset it first. */
  snapshotBegin?(snapshot: SnapshotStart): void;
  /** Part of a snapshot, to be written to the terminal. */
  snapshotPart?(bytes: Uint8Array): void;
  /**
   * The snapshot is complete. Call `rendered` once the terminal has processed it. Without this callback it counts as
   * rendered.
   */
  snapshotEnd?(offset: number, rendered: () => void): void;
  /**
   * Output, to be written to the terminal. Call `rendered` once the terminal has processed it (xterm.js:
   * `write(bytes, rendered)`). Only then is it acknowledged, and the session sends only a window of unacknowledged output.
   * Without this callback it counts as rendered.
   */
  output?(bytes: Uint8Array, offset: number, rendered: () => void): void;
  /** Resize the terminal, once all earlier output is written. */
  resize?(size: Size): void;
  title?(title: string): void;
  /** The shell's current directory. */
  cwd?(cwd: string): void;
  /** The program sent a notification. `title` may be empty. */
  notify?(title: string, body: string): void;
  /** The program printed a link. `open` if it looks like a login page that the program waits for. */
  url?(url: string, open: boolean): void;
  bell?(): void;
  /** The attached clients changed. `you` is what this viewer may do, and whether it owns the size. */
  presence?(clients: readonly PresenceEntry[], you: Permissions): void;
  /**
   * The result of a command: accepted, rejected, or `unsent`. The latter was not repeated, because the connection was lost for
   * too long or the session was restarted; it may have been accepted all the same.
   */
  command?(id: string, outcome: CommandOutcome): void;
  /** The program exited. There is no more output; state `ended` follows. */
  exit?(status: ExitStatus, offset: number): void;
  /**
   * Typed bytes that are not sent unless the user decides so: call `sendUnsent` or `discardUnsent`. Called again, with all of
   * them, if there are more.
   */
  unsent?(unsent: Unsent): void;
  /** An error to log or show. */
  error?(error: ConnectionError): void;
}

export interface SnapshotStart {
  readonly reason: Reason;
  readonly scope: Scope;
  /** The range of output that the snapshot replaces, and that is not sent as bytes. */
  readonly missed: Missed | undefined;
  /** The offset at which output continues after the snapshot. */
  readonly offset: number;
  /** The terminal's size at that offset. */
  readonly size: Size;
  /** The length of the snapshot. */
  readonly bytes: number;
}

export type CommandOutcome =
  | { readonly kind: "accepted"; readonly seq: number; readonly duplicate: boolean }
  | { readonly kind: "rejected"; readonly code: string; readonly message: string }
  | { readonly kind: "unsent" };

export interface TerminalOptions {
  /** `browserEnvironment()` in a page, `plainEnvironment()` elsewhere. */
  readonly environment: Environment;
  /** Where to connect: `api.attachTarget(session)`. */
  readonly target: TargetBuilder;
  readonly on: TerminalCallbacks;
  /** Identifies this page load or program run; `newClientId()` by default. Never store it: a duplicated tab is another client. */
  readonly client?: ClientId;
  /** The client id before a page reload. If it owned the terminal size, this client takes over. */
  readonly was?: ClientId;
  /** Where to resume, for a terminal that already shows everything before. */
  readonly cursor?: Cursor;
  /** The size of the window. Without it, this viewer never owns the terminal size. */
  readonly size?: Size;
  /** Become the size owner on attaching. */
  readonly claimSize?: boolean;
  /** What the session does when this viewer cannot keep up: `skip` ahead by a snapshot (default), or `wait`. */
  readonly lag?: Lag;
  /** Lines of scrollback in a snapshot of scope `all`; 1000 by default. */
  readonly scrollback?: number;
  /** Attach read-only. */
  readonly observe?: boolean;
  /** The colours with which the session answers the program's colour queries. */
  readonly theme?: Theme;
  /** The `unsent` of an earlier connection to this session: bytes that the user has neither sent nor discarded yet. */
  readonly unsent?: Unsent | undefined;
  /** When to reconnect; `BROWSER` by default. */
  readonly backoff?: Backoff;
}

/** A terminal attached to one session, over as many connections as it takes. The constructor starts connecting. */
export class TerminalConnection {
  readonly client: ClientId;
  readonly #on: TerminalCallbacks;
  readonly #link: Client;
  readonly #driver: Driver;

  constructor(options: TerminalOptions) {
    const { on, environment, target, backoff, client = newClientId(), was, cursor, size } = options;
    const { lag, scrollback, observe, theme, unsent } = options;
    this.client = client;
    this.#on = on;
    const window = size && clampSize(size);
    this.#link = new Client({ client, was, cursor, size: window, lag, scrollback, observe, theme, unsent });
    if (options.claimSize && window && !observe) this.#link.claimSize(window);
    this.#driver = new Driver({
      environment,
      target,
      backoff,
      protocol: this.#link,
      deliver: () => this.#deliver(),
      show: (state) => safely(() => on.state?.(state)),
      report: (error) => safely(() => on.error?.(error)),
    });
    this.#driver.start();
  }

  get state(): ConnectionState {
    return this.#driver.state;
  }

  /** Whether this viewer may type, and whether it owns the terminal size, as of the session's last message about it. */
  get you(): Permissions {
    return this.#link.you;
  }

  /** The position of the terminal in the output; `undefined` until the first snapshot is complete. */
  get cursor(): Cursor | undefined {
    return this.#link.cursor;
  }

  /** The number of typed bytes that the session has not accepted yet. */
  get queuedBytes(): number {
    return this.#link.queuedBytes;
  }

  /**
   * Typed bytes that wait for `sendUnsent` or `discardUnsent`, if there are any. After `dispose()`, all bytes that were not
   * sent.
   */
  get unsent(): Unsent | undefined {
    return this.#link.unsent;
  }

  /**
   * Types keys or pasted text into the session. The bytes are kept until the session has accepted them, also while
   * disconnected. Returns a reason if nothing was kept: `full` if the bytes do not fit in the 8 MiB that may wait,
   * `read-only`, or `ended`.
   */
  input(data: Uint8Array | string): SubmitError | undefined {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    return this.#update(() => this.#link.handleInput(bytes, this.#driver.now()));
  }

  /** Reports the size of the window. Resize the terminal only when the session says so (`resize`, `snapshotBegin`, `attached`). */
  resize(size: Size): void {
    this.#update(() => this.#link.handleResize(clampSize(size)));
  }

  /** Becomes the size owner, with this size. */
  claimSize(size: Size): void {
    this.#update(() => this.#link.claimSize(clampSize(size)));
  }

  /** Requests the visible screen again, for example after something else was drawn over it. */
  repaint(): void {
    this.#update(() => this.#link.repaint());
  }

  /**
   * Sends a command, which the session executes once even if it has to be repeated. Returns its id, or the reason why it was
   * not accepted here. The result is reported to `on.command`.
   */
  command(command: unknown, id: string = newClientId()): { id: string } | SubmitError {
    return this.#update(() => this.#link.command(id, command, this.#driver.now())) ?? { id };
  }

  /** Sends the bytes that were reported as unsent. Does nothing once the connection has ended. */
  sendUnsent(): void {
    this.#update(() => this.#link.sendUnsent(this.#driver.now()));
  }

  /** Discards the bytes that were reported as unsent. */
  discardUnsent(): void {
    this.#update(() => this.#link.discardUnsent());
  }

  /** Reconnects now instead of waiting. Call it when the user asks for it, or after a new login. */
  retry(): void {
    this.#driver.retry();
  }

  /** Closes the connection for good. Removes every listener and timer; no callback is called afterwards. */
  dispose(): void {
    this.#driver.dispose();
  }

  /** Changes the link, then does the work that results from it. */
  #update<T>(change: () => T): T {
    const result = change();
    this.#driver.work();
    return result;
  }

  #deliver(): boolean {
    const event = this.#link.pollEvent();
    if (event) this.#dispatch(event);
    return event !== undefined;
  }

  #dispatch(event: ClientEvent): void {
    const on = this.#on;
    switch (event.kind) {
      case "attached":
        return safely(() => on.attached?.(event.attached));
      case "snapshot_begin":
        return safely(() => on.snapshotBegin?.(event));
      case "snapshot_part":
        return safely(() => on.snapshotPart?.(event.bytes));
      case "snapshot_end": {
        const rendered = this.#rendered(event.offset);
        return on.snapshotEnd ? safely(() => on.snapshotEnd?.(event.offset, rendered)) : rendered();
      }
      case "output": {
        const rendered = this.#rendered(event.offset + event.bytes.length);
        return on.output ? safely(() => on.output?.(event.bytes, event.offset, rendered)) : rendered();
      }
      case "resize":
        return safely(() => on.resize?.(event.size));
      case "exit":
        safely(() => on.exit?.(event.status, event.offset));
        return this.#driver.end();
      case "closing":
        return this.#driver.closing(event.code, event.reason);
      case "message":
        return safely(() => this.#dispatchNotice(event.message));
      case "unsent":
        return safely(() => on.unsent?.(event.unsent));
      case "command_unsent":
        return safely(() => on.command?.(event.id, { kind: "unsent" }));
      case "state":
    }
  }

  #dispatchNotice(message: Notice): void {
    const on = this.#on;
    switch (message.type) {
      case "title":
        return on.title?.(message.title);
      case "cwd":
        return on.cwd?.(message.cwd);
      case "notify":
        return on.notify?.(message.title, message.body);
      case "url":
        return on.url?.(message.url, message.open);
      case "bell":
        return on.bell?.();
      case "presence":
        return on.presence?.(message.clients, this.#link.you);
      case "accepted":
        return on.command?.(message.id, { kind: "accepted", seq: message.seq, duplicate: message.duplicate });
      case "rejected":
        return on.command?.(message.id, { kind: "rejected", code: message.code, message: message.message });
      case "error":
        return on.error?.({ source: "server", code: message.code, message: message.message });
    }
  }

  /** Returns the callback for the terminal that acknowledges output up to `offset`. It has no effect after a reconnect. */
  #rendered(offset: number): () => void {
    const generation = this.#driver.generation;
    return () => {
      if (this.#driver.generation === generation) this.#update(() => this.#link.handleRendered(offset));
    };
  }
}
