/** The board: the list of all sessions, kept up to date across reconnects. */
import type { Backoff } from "../core/backoff.js";
import { Feed, type FeedEvent } from "../core/link/feed.js";
import type { ClientId, SessionId, SessionInfo } from "../core/wire.js";
import { safely } from "./callback.js";
import { Driver } from "./driver.js";
import type { Environment, TargetBuilder } from "./environment.js";
import type { ConnectionError, ConnectionState } from "./state.js";

/** Called when the list of sessions changes. Every callback is optional. */
export interface EventsCallbacks {
  /** Called once for each change of state. */
  state?(state: ConnectionState): void;
  /** The gateway accepted the connection. A different `epoch` means that the gateway was restarted. */
  welcome?(welcome: { client: ClientId; epoch: string; version: string }): void;
  /** All sessions, in place of all earlier ones. Called at the start of each connection. */
  board?(sessions: readonly SessionInfo[]): void;
  /** A session was added or changed. */
  session?(session: SessionInfo): void;
  /** A session was forgotten, that is, its files were removed. */
  sessionGone?(id: SessionId): void;
  /** An error to log or show. A session whose description cannot be parsed is reported here only. */
  error?(error: ConnectionError): void;
}

export interface EventsOptions {
  /** `browserEnvironment()` in a page, `plainEnvironment()` elsewhere. */
  readonly environment: Environment;
  /** Where to connect: `api.eventsTarget(client)`. */
  readonly target: TargetBuilder;
  readonly on: EventsCallbacks;
  /** When to reconnect; `BROWSER` by default. */
  readonly backoff?: Backoff;
}

/** The list of all sessions, over as many connections as it takes. The constructor starts connecting. */
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

  get state(): ConnectionState {
    return this.#driver.state;
  }

  /** Reconnects now instead of waiting. Call it when the user asks for it, or after a new login. */
  retry(): void {
    this.#driver.retry();
  }

  /** Closes the connection for good. Removes every listener and timer; no callback is called afterwards. */
  dispose(): void {
    this.#driver.dispose();
  }

  #deliver(): boolean {
    const event = this.#feed.pollEvent();
    if (event) safely(() => this.#dispatch(event));
    return event !== undefined;
  }

  #dispatch(event: FeedEvent): void {
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
      case "watched":
      case "event":
        return; // This client watches no sessions.
      case "error":
        return on.error?.({ source: "server", code: event.code, message: event.message });
      case "unreadable": {
        const { id, message } = event.error;
        const session = id === undefined ? {} : { session: id };
        const name = id === undefined ? "a session with an unknown id" : `session ${id}`;
        return on.error?.({ source: "session", ...session, message: `cannot read ${name}: ${message}` });
      }
    }
  }
}
