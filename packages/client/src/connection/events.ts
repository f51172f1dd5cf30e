/** The event stream: the list of all sessions (the board), and the events of watched ones, across reconnects. */
import type { UnreadRecord } from "../core/agent/event.js";
import type { Backoff } from "../core/backoff.js";
import { Feed, type FeedEvent } from "../core/link/feed.js";
import type { ClientId, Cursor, Reason, SessionId, SessionInfo, Verdict } from "../core/wire.js";
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

/** Called for one watched session. */
export interface WatchCallbacks {
  /**
   * The events from `cursor` on follow. With the verdict `exact` they continue those before; with `snapshot` they do not, so
   * read the history again. Called on each connection, and again if the events could not continue exactly.
   */
  watched?(answer: WatchAnswer): void;
  /** The next event: each once, and in order. `readRecord` parses it. */
  record?(record: UnreadRecord): void;
  /** Another watch of the same session took the place of this one, which has ended. */
  superseded?(): void;
}

export interface WatchAnswer {
  readonly cursor: Cursor;
  readonly verdict: Verdict;
  /** Only with the verdict `snapshot`. */
  readonly reason: Reason | undefined;
}

/** A watch of a session. */
export interface Watch {
  /**
   * Watches the events from the cursor on, or from now on: on this connection and, from the event after the last one that was
   * delivered, on every later one. Can be called again, with another cursor.
   */
  start(cursor?: Cursor): void;
  /** Stops the events until `start` is called again. */
  pause(): void;
  /** Ends the watch. No callback of it is called afterwards. */
  end(): void;
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

/** The event stream, over as many connections as it takes. The constructor starts connecting. */
export class EventsConnection {
  /** The callbacks of the options, and those of other subscribers. */
  readonly #subscribers: Set<{ readonly on: EventsCallbacks }>;
  /** By the number of the watch. */
  readonly #watches = new Map<number, WatchCallbacks>();
  /** The machines of the sessions that belong to another one than the gateway's. */
  readonly #hosts = new Map<SessionId, string>();
  readonly #feed = new Feed();
  readonly #driver: Driver;

  constructor({ environment, target, backoff, on }: EventsOptions) {
    this.#subscribers = new Set([{ on }]);
    this.#driver = new Driver({
      environment,
      target,
      backoff,
      protocol: this.#feed,
      deliver: () => this.#deliver(),
      show: (state) => this.#each((on) => on.state?.(state)),
      report: (error) => this.#each((on) => on.error?.(error)),
    });
    this.#driver.start();
  }

  get state(): ConnectionState {
    return this.#driver.state;
  }

  /** The machine that a session belongs to, if that is known to be another one than the gateway's: it cannot be watched here. */
  hostOf(session: SessionId): string | undefined {
    return this.#hosts.get(session);
  }

  /** Calls these callbacks, too, until the returned function is called. */
  subscribe(on: EventsCallbacks): () => void {
    const subscriber = { on };
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /**
   * Makes a watch of a session, given its id; call its `start`. A session has one watch: the one before ends. Returns
   * `undefined` if 64 sessions have one already.
   */
  watch(session: SessionId, on: WatchCallbacks): Watch | undefined {
    const watch = this.#feed.addWatch(session);
    if (watch === undefined) return undefined;
    this.#watches.set(watch, on);
    const then = (change: () => void) => {
      change();
      this.#driver.work();
    };
    this.#driver.work();
    return {
      start: (cursor) => then(() => this.#feed.startWatch(watch, cursor)),
      pause: () => then(() => this.#feed.pauseWatch(watch)),
      end: () =>
        then(() => {
          this.#watches.delete(watch);
          this.#feed.removeWatch(watch);
        }),
    };
  }

  /** Reconnects now instead of waiting. Call it when the user asks for it, or after a new login. */
  retry(): void {
    this.#driver.retry();
  }

  /** Closes the connection for good. Removes every listener and timer; no callback is called afterwards. */
  dispose(): void {
    this.#driver.dispose();
    this.#subscribers.clear();
    this.#watches.clear();
  }

  #deliver(): boolean {
    const event = this.#feed.pollEvent();
    if (event) this.#dispatch(event);
    return event !== undefined;
  }

  #dispatch(event: FeedEvent): void {
    switch (event.type) {
      case "welcome": {
        const { client, epoch, version } = event;
        return this.#each((on) => on.welcome?.({ client, epoch, version }));
      }
      case "board":
        this.#hosts.clear();
        event.sessions.forEach((session) => this.#keepHost(session));
        return this.#each((on) => on.board?.(event.sessions));
      case "session":
        this.#keepHost(event.session);
        return this.#each((on) => on.session?.(event.session));
      case "session_gone":
        this.#hosts.delete(event.id);
        return this.#each((on) => on.sessionGone?.(event.id));
      case "error":
        return this.#each((on) => on.error?.({ source: "server", code: event.code, message: event.message }));
      case "unreadable": {
        const { id, message } = event.error;
        const session = id === undefined ? {} : { session: id };
        const name = id === undefined ? "a session with an unknown id" : `session ${id}`;
        const error: ConnectionError = { source: "session", ...session, message: `cannot read ${name}: ${message}` };
        return this.#each((on) => on.error?.(error));
      }
      case "watched": {
        const { watch, cursor, verdict, reason } = event;
        return safely(() => this.#watches.get(watch)?.watched?.({ cursor, verdict, reason }));
      }
      case "record":
        return safely(() => this.#watches.get(event.watch)?.record?.(event.record));
      case "superseded": {
        const on = this.#watches.get(event.watch);
        this.#watches.delete(event.watch);
        return safely(() => on?.superseded?.());
      }
    }
  }

  #keepHost({ id, host }: SessionInfo): void {
    if (host === undefined) this.#hosts.delete(id);
    else this.#hosts.set(id, host);
  }

  /** Calls every subscriber. One that is removed on the way is not called any more. */
  #each(call: (on: EventsCallbacks) => void): void {
    for (const subscriber of [...this.#subscribers]) {
      if (this.#subscribers.has(subscriber)) safely(() => call(subscriber.on));
    }
  }
}
