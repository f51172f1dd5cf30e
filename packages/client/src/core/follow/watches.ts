/**
 * The sessions that an event stream watches, over all its connections.
 *
 * The server does not say which `watch` a message answers. So a session that was unwatched is watched again only once a pong
 * shows that nothing of the earlier watch is on its way any more.
 */
import type { UnreadRecord } from "../agent/event.js";
import { WATCHES } from "../config.js";
import type { BoardMessage, Cursor, Reason, SessionId, Verdict, WatchedSession } from "../wire.js";
import { Position } from "./position.js";

/** Something about one watch, by the number that {@link Watches.add} returned. */
export type WatchEvent =
  /** The events from `cursor` on follow. With the verdict `snapshot`, they do not continue those before. */
  | {
      readonly type: "watched";
      readonly watch: number;
      readonly position: Position;
      readonly cursor: Cursor;
      readonly verdict: Verdict;
      readonly reason: Reason | undefined;
    }
  /** The next event of the session. */
  | { readonly type: "record"; readonly watch: number; readonly position: Position; readonly record: UnreadRecord }
  /** Another watch of the same session took its place. */
  | { readonly type: "superseded"; readonly watch: number };

/** An event to pass on; or the reason why the connection must be closed; or nothing. */
export type Received = WatchEvent | string | undefined;

interface Watch {
  readonly number: number;
  readonly session: SessionId;
  /** `undefined` while it is paused. */
  position: Position | undefined;
  /** Whether the server of this connection was told of it, and has answered. */
  phase: "unsent" | "sent" | "answered";
}

/** The watched sessions of an event stream. A session has at most one watch. */
export class Watches {
  readonly #watches = new Map<SessionId, Watch>();
  /**
   * Sessions that the server of this connection is to unwatch: the number of the ping whose pong says that it did;
   * `undefined` until that is sent.
   */
  readonly #leaving = new Map<SessionId, number | undefined>();
  #count = 0;

  /**
   * Adds a watch, which is paused. Returns its number, and that of the session's earlier watch, which ends; `undefined` if
   * there are too many.
   */
  add(session: SessionId): { added: number; superseded: number | undefined } | undefined {
    const earlier = this.#watches.get(session);
    if (!earlier && this.#watches.size >= WATCHES) return undefined;
    if (earlier) this.#stop(earlier);
    const added = ++this.#count;
    this.#watches.set(session, { number: added, session, position: undefined, phase: "unsent" });
    return { added, superseded: earlier?.number };
  }

  /** Starts a watch from a cursor, or from now on; also one that has started before. */
  start(number: number, cursor: Cursor | undefined): void {
    const watch = this.#find(number);
    if (!watch) return;
    this.#stop(watch);
    watch.position = new Position(cursor);
  }

  pause(number: number): void {
    const watch = this.#find(number);
    if (watch) this.#stop(watch);
  }

  /** Ends a watch. Does nothing if another has taken its place. */
  remove(number: number): void {
    const watch = this.#find(number);
    if (!watch) return;
    this.#stop(watch);
    this.#watches.delete(watch.session);
  }

  /** Whether the watch of an event has neither ended nor been paused or started again since. */
  isCurrent(event: WatchEvent): boolean {
    return event.type === "superseded" || this.#find(event.watch)?.position === event.position;
  }

  /** A new connection knows of no watch. */
  handleConnected(): void {
    this.#leaving.clear();
    for (const watch of this.#watches.values()) watch.phase = "unsent";
  }

  handleWatched(message: Extract<BoardMessage, { type: "watched" }>): Received {
    const { session, epoch, seq, verdict, reason } = message;
    const watch = this.#watches.get(session);
    // Messages that were on their way when the session was unwatched mean nothing.
    if (!watch?.position || watch.phase === "unsent") return undefined;
    const { number, position } = watch;
    const refused = position.handleVerdict(verdict, epoch, seq);
    if (refused !== undefined) return refused;
    watch.phase = "answered";
    return { type: "watched", watch: number, position, cursor: { epoch, offset: seq }, verdict, reason };
  }

  handleEvent({ session, type: _, ...record }: Extract<BoardMessage, { type: "event" }>): Received {
    const watch = this.#watches.get(session);
    if (!watch?.position || watch.phase === "unsent") return undefined;
    if (watch.phase === "sent") return "an event before the verdict";
    const { number, position } = watch;
    return position.handleRecord(record) ?? { type: "record", watch: number, position, record };
  }

  /** The server has answered this ping, and everything that was sent before it. */
  handlePong(n: number): void {
    for (const [session, ping] of this.#leaving) if (ping !== undefined && ping <= n) this.#leaving.delete(session);
  }

  /** The sessions to unwatch now, if any. `ping` makes the ping that follows the message, and returns its number. */
  pollUnwatch(ping: () => number): SessionId[] | undefined {
    const sessions = [...this.#leaving].filter(([, sent]) => sent === undefined).map(([session]) => session);
    if (sessions.length === 0) return undefined;
    const n = ping();
    for (const session of sessions) this.#leaving.set(session, n);
    return sessions;
  }

  /** The sessions to watch now, if any. */
  pollWatch(): WatchedSession[] | undefined {
    const sessions: WatchedSession[] = [];
    for (const watch of this.#watches.values()) {
      const { session, position, phase } = watch;
      if (!position || phase !== "unsent" || this.#leaving.has(session)) continue;
      watch.phase = "sent";
      sessions.push({ id: session, ...(position.cursor ? { cursor: position.cursor } : {}) });
    }
    return sessions.length > 0 ? sessions : undefined;
  }

  #find(number: number): Watch | undefined {
    for (const watch of this.#watches.values()) if (watch.number === number) return watch;
    return undefined;
  }

  #stop(watch: Watch): void {
    if (watch.phase !== "unsent") this.#leaving.set(watch.session, undefined);
    watch.phase = "unsent";
    watch.position = undefined;
  }
}
