/** A terminal that stays attached to one session over any number of connections. */
import type { Backoff } from "../core/backoff.js";
import { clampSize, newClientId } from "../core/ids.js";
import { Client, type NotTaken } from "../core/link/client.js";
import type { ClientEvent, Notice } from "../core/link/event.js";
import type { Unsent } from "../core/link/outbox.js";
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
import { safely } from "./callback.js";
import { Driver } from "./driver.js";
import type { Environment, TargetBuilder } from "./environment.js";
import type { ConnectionError, ConnectionState } from "./state.js";

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
  /**
   * Typed bytes that are not sent by themselves: see `sendUnsent` and `discardUnsent`. Comes again, with all of them, when
   * there are more.
   */
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

/** What became of a command. */
export type CommandOutcome =
  | { readonly kind: "accepted"; readonly seq: number; readonly duplicate: boolean }
  | { readonly kind: "rejected"; readonly code: string; readonly message: string }
  | { readonly kind: "unsent" };

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
  /** What an earlier connection to this session left undecided (its `unsent`): it waits for the same decision here. */
  readonly unsent?: Unsent | undefined;
  /** When to dial again; `BROWSER` by default. */
  readonly backoff?: Backoff;
}

/** A terminal that stays attached to one session over any number of connections. It dials as soon as it is made. */
export class TerminalConnection {
  /** This client. */
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

  /** The state. */
  get state(): ConnectionState {
    return this.#driver.state;
  }

  /** What this viewer may do and is, as far as it knows. */
  get you(): You {
    return this.#link.you;
  }

  /** Where the terminal is; nothing before the first snapshot is whole. */
  get cursor(): Cursor | undefined {
    return this.#link.cursor;
  }

  /** Typed bytes that the session has not taken yet. */
  get waiting(): number {
    return this.#link.waiting;
  }

  /** Typed bytes that wait for `sendUnsent` or `discardUnsent`, if any do. Also after `dispose()`, with all that was not sent. */
  get unsent(): Unsent | undefined {
    return this.#link.unsent;
  }

  /**
   * Keys were typed, or text was pasted. All of it is kept until the session has taken it, also while there is no connection. If
   * none of it can be kept, returns why: `full` when more than 8 MiB would wait.
   */
  input(data: Uint8Array | string): NotTaken | undefined {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    return this.#then(() => this.#link.handleInput(bytes, this.#driver.now()));
  }

  /** The window has this size now. The terminal follows only on the session's word (`resize`, `snapshotBegin`, `attached`). */
  resize(size: Size): void {
    this.#then(() => this.#link.handleResize(clampSize(size)));
  }

  /** Become the size owner, with this size. */
  claimSize(size: Size): void {
    this.#then(() => this.#link.claimSize(clampSize(size)));
  }

  /** Ask for the visible screen again, because something local covered it. */
  repaint(): void {
    this.#then(() => this.#link.repaint());
  }

  /** Do something once. Returns the command's id, or why it was not taken. `on.command` tells what became of it. */
  command(command: unknown, id: string = newClientId()): { id: string } | NotTaken {
    return this.#then(() => this.#link.command(id, command, this.#driver.now())) ?? { id };
  }

  /** Type what was reported unsent after all. Once the connection is over, it stays unsent. */
  sendUnsent(): void {
    this.#then(() => this.#link.sendUnsent(this.#driver.now()));
  }

  /** Forget what was reported unsent. */
  discardUnsent(): void {
    this.#then(() => this.#link.discardUnsent());
  }

  /** Try again now: the user asked, or has logged in. */
  retry(): void {
    this.#driver.retry();
  }

  /** Leave for good: removes every listener and timer, and calls nothing back any more. */
  dispose(): void {
    this.#driver.dispose();
  }

  /** Tells the link something, then does what follows from it. */
  #then<T>(tell: () => T): T {
    const told = tell();
    this.#driver.work();
    return told;
  }

  #deliver(): boolean {
    const event = this.#link.pollEvent();
    if (event) this.#tell(event);
    return event !== undefined;
  }

  #tell(event: ClientEvent): void {
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
        return safely(() => this.#notice(event.message));
      case "unsent":
        return safely(() => on.unsent?.(event.unsent));
      case "command_unsent":
        return safely(() => on.command?.(event.id, { kind: "unsent" }));
      case "state":
    }
  }

  #notice(message: Notice): void {
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
      case "event":
    }
  }

  /** What the terminal calls once it took everything up to the offset. It counts for this connection alone. */
  #rendered(offset: number): () => void {
    const generation = this.#driver.generation;
    return () => {
      if (this.#driver.generation === generation) this.#then(() => this.#link.handleRendered(offset));
    };
  }
}
