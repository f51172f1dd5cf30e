/**
 * The client's end of the event stream. The board needs no cursor, because each connection starts with the whole of it; each
 * watched session has one.
 */
import { MALFORMED, TIMED_OUT } from "../close.js";
import type { Frame } from "../frame.js";
import { type Received, type WatchEvent, Watches } from "../follow/watches.js";
import { boardReader, UnreadableSession } from "../message.js";
import type { BoardClientMessage, BoardMessage, Cursor, SessionId } from "../wire.js";
import type { Protocol, Transmit } from "./protocol.js";
import { Liveness } from "./liveness.js";

export type FeedEvent =
  | Exclude<BoardMessage, { type: "watched" | "event" | "ping" | "pong" }>
  | WatchEvent
  /** A session whose description could not be parsed, and that was left out. */
  | { readonly type: "unreadable"; readonly error: UnreadableSession };

/** The event stream, over all its connections. */
export class Feed implements Protocol {
  readonly #liveness = new Liveness();
  readonly #watches = new Watches();
  readonly #read = boardReader((error) => this.#reportUnreadable(error));
  #state: "detached" | "greeting" | "attached" | "ended" = "detached";
  #hello: BoardClientMessage | undefined;
  #pendingClose: { code: number; reason: string } | undefined;
  /** Whether this connection is still read from and written to. */
  #active = false;
  #events: FeedEvent[] = [];
  #now = 0;

  get attached(): boolean {
    return this.#state === "attached";
  }

  /** Adds a watch of a session, which is paused. An earlier watch of the session ends. `undefined` if there are too many. */
  addWatch(session: SessionId): number | undefined {
    const watch = this.#watches.add(session);
    if (watch?.superseded !== undefined) this.#events.push({ type: "superseded", watch: watch.superseded });
    return watch?.added;
  }

  /** Watches the events from the cursor on, or from now on. */
  startWatch(watch: number, cursor: Cursor | undefined): void {
    this.#watches.start(watch, cursor);
  }

  pauseWatch(watch: number): void {
    this.#watches.pause(watch);
  }

  removeWatch(watch: number): void {
    this.#watches.remove(watch);
  }

  handleConnected(now: number, key?: string): void {
    this.handleDisconnected(now);
    if (this.#state === "ended") return;
    this.#watches.handleConnected();
    this.#liveness.handleConnected(this.#now);
    // A browser login needs a hello with its key, because the cookie alone is not enough. Tokens and tickets are.
    this.#hello = key === undefined ? undefined : { type: "hello", key };
    this.#active = true;
    this.#state = "greeting";
  }

  handleDisconnected(now: number): void {
    this.#tick(now);
    this.#liveness.handleDisconnected();
    this.#active = false;
    this.#hello = this.#pendingClose = undefined;
    if (this.#state !== "ended") this.#state = "detached";
  }

  handleEnded(now: number): void {
    this.#tick(now);
    this.#active = false;
    this.#state = "ended";
  }

  handleFrame(frame: Frame, now: number): void {
    this.#tick(now);
    if (!this.#active) return;
    this.#liveness.handleReceived(this.#now);
    if (typeof frame !== "string") return this.#abort(MALFORMED, "a malformed payload");
    try {
      const message = this.#read(JSON.parse(frame));
      if (message) this.#readMessage(message);
    } catch (error) {
      if (error instanceof UnreadableSession) this.#reportUnreadable(error);
      else this.#abort(MALFORMED, "a malformed message");
    }
  }

  #reportUnreadable(error: UnreadableSession): void {
    this.#events.push({ type: "unreadable", error });
  }

  #readMessage(message: BoardMessage): void {
    switch (message.type) {
      case "ping":
        return this.#liveness.handlePing(message.n);
      case "pong":
        return this.#watches.handlePong(message.n);
      case "welcome":
        this.#liveness.heartbeat = Math.max(message.heartbeat, 1);
        this.#state = "attached";
        break;
      case "board":
      case "session":
      case "session_gone":
        if (this.#state !== "attached") return this.#abort(MALFORMED, "a message out of order");
        break;
      case "watched":
        return this.#readWatch(this.#watches.handleWatched(message));
      case "event":
        return this.#readWatch(this.#watches.handleEvent(message));
      case "error":
    }
    this.#events.push(message);
  }

  #readWatch(received: Received): void {
    if (typeof received === "string") this.#abort(MALFORMED, received);
    else if (received) this.#events.push(received);
  }

  handleWake(now: number): void {
    const slept = Math.max(now - this.#now, 0);
    this.#tick(now);
    if (!this.#active) return;
    const why = this.#liveness.handleWake(slept, this.#now);
    if (why !== undefined) this.#abort(TIMED_OUT, why);
  }

  handleTimeout(now: number): void {
    this.#tick(now);
    if (!this.#active) return;
    const why = this.#liveness.handleTimeout(this.#now, { greeting: this.#state === "greeting" });
    if (why !== undefined) this.#abort(TIMED_OUT, why);
  }

  pollTimeout(): number | undefined {
    return this.#active ? this.#liveness.pollTimeout({ greeting: this.#state === "greeting" }) : undefined;
  }

  /** The next event, oldest first. */
  pollEvent(): FeedEvent | undefined {
    for (;;) {
      const event = this.#events.shift();
      const late = event && "watch" in event && !this.#watches.isCurrent(event);
      if (!late) return event;
    }
  }

  pollTransmit(now: number): Transmit | undefined {
    this.#tick(now);
    if (this.#pendingClose) {
      const close = this.#pendingClose;
      this.#pendingClose = undefined;
      return { kind: "close", ...close };
    }
    if (!this.#active) return undefined;
    const message = this.#nextMessage();
    return message && { kind: "send", frame: JSON.stringify(message) };
  }

  #nextMessage(): BoardClientMessage | undefined {
    const hello = this.#hello;
    this.#hello = undefined;
    if (hello) return hello;
    const unwatched = this.#watches.pollUnwatch(() => this.#liveness.ping(this.#now));
    if (unwatched) return { type: "unwatch", sessions: unwatched };
    const beat = this.#liveness.pollTransmit();
    if (beat) return beat;
    const watched = this.#state === "attached" ? this.#watches.pollWatch() : undefined;
    return watched && { type: "watch", sessions: watched };
  }

  /** Stops using this connection, and makes the driver close it. */
  #abort(code: number, reason: string): void {
    this.#pendingClose = { code, reason };
    this.#active = false;
  }

  #tick(now: number): void {
    this.#now = Math.max(this.#now, now);
  }
}
