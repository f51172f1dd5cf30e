/** The board: which sessions there are, kept true over any number of connections. */
import type { Backoff } from "../core/backoff.js";
import { Feed, type FeedEvent } from "../core/link/feed.js";
import type { ClientId, SessionId, SessionInfo } from "../core/wire.js";
import { safely } from "./callback.js";
import { Driver } from "./driver.js";
import type { Environment, TargetBuilder } from "./environment.js";
import type { ConnectionError, ConnectionState } from "./state.js";

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
  /** Something was wrong. For people and logs. A session that cannot be read is told here, and left out of everything else. */
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
export class EventsConnection {
  readonly #on: EventsCallbacks;
  readonly #feed = new Feed();
  readonly #driver: Driver;

  constructor({ environment, target, backoff, on }: EventsOptions) {
    this.#on = on;
    this.#driver = new Driver({
      environment,
      target,
      backoff,
      protocol: this.#feed,
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

  /** Try again now: the user asked, or has logged in. */
  retry(): void {
    this.#driver.retry();
  }

  /** Leave for good: removes every listener and timer, and calls nothing back any more. */
  dispose(): void {
    this.#driver.dispose();
  }

  #deliver(): boolean {
    const event = this.#feed.pollEvent();
    if (event) safely(() => this.#tell(event));
    return event !== undefined;
  }

  #tell(event: FeedEvent): void {
    const on = this.#on;
    switch (event.type) {
      case "welcome":
        return on.welcome?.({ client: event.client, epoch: event.epoch, version: event.version });
      case "board":
        return on.board?.(event.sessions);
      case "session":
        return on.session?.(event.session);
      case "session_gone":
        return on.sessionGone?.(event.id);
      case "error":
        return on.error?.({ source: "server", code: event.code, message: event.message });
      case "unreadable": {
        const { id, message } = event.error;
        const session = id === undefined ? {} : { session: id };
        return on.error?.({
          source: "session",
          ...session,
          message: `session ${id ?? "of unknown id"} cannot be read: ${message}`,
        });
      }
    }
  }
}
