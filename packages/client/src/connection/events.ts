/** The board: which sessions there are, kept true over any number of connections. */
import type { Backoff } from "../core/backoff.js";
import type { ClientId, SessionId, SessionInfo } from "../core/wire.js";
import type { Environment, TargetBuilder } from "./environment.js";
import type { ConnectionState } from "./state.js";
import type { ConnectionError } from "./terminal.js";

/** What a board is told. */
export interface EventsCallbacks {
  /** The state changed. Called once for each change. */
  state?(state: ConnectionState): void;
  /** The gateway answered; another `epoch` is another run of it. */
  welcome?(welcome: { client: ClientId; epoch: string; version: string }): void;
  /** Every session there is. What was known before is replaced. Comes anew on each connection. */
  board?(sessions: readonly SessionInfo[]): void;
  /** A session is new, or changed. */
  session?(session: SessionInfo): void;
  /** A session was forgotten. */
  sessionGone?(id: SessionId): void;
  /** Something was wrong. For people and logs. */
  error?(error: ConnectionError): void;
}

/** What an events connection is made of. */
export interface EventsOptions {
  /** The world; `browserEnvironment()` in a page. */
  readonly environment: Environment;
  /** Where to dial: `api.eventsTarget(client)`. */
  readonly target: TargetBuilder;
  /** What it tells. */
  readonly on: EventsCallbacks;
  /** When to dial again; `BROWSER` by default. */
  readonly backoff?: Backoff;
}

/** The event stream over any number of connections. It dials as soon as it is made. */
export declare class EventsConnection {
  constructor(options: EventsOptions);
  /** The state. */
  get state(): ConnectionState;
  /** Try again now: the user asked, or has logged in. */
  retry(): void;
  /** Leave for good: removes every listener and timer, and calls nothing back any more. */
  dispose(): void;
}
