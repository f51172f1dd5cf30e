/** The client's end of the event stream. It needs no cursor: each connection brings the whole board. */
import { MALFORMED, SILENT } from "../close.js";
import type { Frame } from "../frame.js";
import { boardReader, UnreadableSession } from "../message.js";
import type { BoardClientMessage, BoardMessage } from "../wire.js";
import type { Protocol, Transmit } from "./protocol.js";
import { Pulse } from "./pulse.js";

/** What the board is told. */
export type FeedEvent =
  | Exclude<BoardMessage, { type: "ping" | "pong" }>
  /** A session of a board, or a change, that was left out. */
  | { readonly type: "unreadable"; readonly error: UnreadableSession };

/** The event stream over all its connections. */
export class Feed implements Protocol {
  readonly #pulse = new Pulse();
  readonly #read = boardReader((error) => this.#leaveOut(error));
  #state: "detached" | "greeting" | "attached" | "ended" = "detached";
  #hello: BoardClientMessage | undefined;
  #givingUp: { code: number; reason: string } | undefined;
  #deaf = true;
  #events: FeedEvent[] = [];
  #now = 0;

  get attached(): boolean {
    return this.#state === "attached";
  }

  handleConnected(now: number, key?: string): void {
    this.handleDisconnected(now);
    if (this.#state === "ended") return;
    this.#pulse.handleConnected(this.#now);
    // A cookie alone is not enough; tokens and tickets are.
    this.#hello = key === undefined ? undefined : { type: "hello", key };
    this.#deaf = false;
    this.#state = "greeting";
  }

  handleDisconnected(now: number): void {
    this.#tick(now);
    this.#pulse.handleDisconnected();
    this.#deaf = true;
    this.#hello = this.#givingUp = undefined;
    if (this.#state !== "ended") this.#state = "detached";
  }

  handleEnded(now: number): void {
    this.#tick(now);
    this.#deaf = true;
    this.#state = "ended";
  }

  handleFrame(frame: Frame, now: number): void {
    this.#tick(now);
    if (this.#deaf) return;
    this.#pulse.handleHeard(this.#now);
    if (typeof frame !== "string") return this.#giveUp(MALFORMED, "a malformed payload");
    try {
      const message = this.#read(JSON.parse(frame));
      if (message) this.#readMessage(message);
    } catch (error) {
      if (error instanceof UnreadableSession) this.#leaveOut(error);
      else this.#giveUp(MALFORMED, "a malformed message");
    }
  }

  /** One session that makes no sense here does not cost the others. */
  #leaveOut(error: UnreadableSession): void {
    this.#events.push({ type: "unreadable", error });
  }

  #readMessage(message: BoardMessage): void {
    switch (message.type) {
      case "ping":
        return this.#pulse.handlePing(message.n);
      case "pong":
        return;
      case "welcome":
        this.#pulse.heartbeat = Math.max(message.heartbeat, 1);
        this.#state = "attached";
        break;
      case "board":
      case "session":
      case "session_gone":
        if (this.#state !== "attached") return this.#giveUp(MALFORMED, "out of order");
        break;
      case "error":
    }
    this.#events.push(message);
  }

  handleWake(now: number): void {
    const slept = Math.max(now - this.#now, 0);
    this.#tick(now);
    if (this.#deaf) return;
    const why = this.#pulse.handleWake(slept, this.#now);
    if (why !== undefined) this.#giveUp(SILENT, why);
  }

  handleTimeout(now: number): void {
    this.#tick(now);
    if (this.#deaf) return;
    const why = this.#pulse.handleTimeout(this.#now, { greeting: this.#state === "greeting" });
    if (why !== undefined) this.#giveUp(SILENT, why);
  }

  pollTimeout(): number | undefined {
    return this.#deaf ? undefined : this.#pulse.pollTimeout({ greeting: this.#state === "greeting" });
  }

  /** What happened, oldest first. */
  pollEvent(): FeedEvent | undefined {
    return this.#events.shift();
  }

  pollTransmit(now: number): Transmit | undefined {
    this.#tick(now);
    if (this.#givingUp) {
      const close = this.#givingUp;
      this.#givingUp = undefined;
      return { kind: "close", ...close };
    }
    if (this.#deaf) return undefined;
    const message = this.#hello ?? this.#pulse.pollTransmit();
    this.#hello = undefined;
    return message && { kind: "send", frame: JSON.stringify(message) };
  }

  #giveUp(code: number, reason: string): void {
    this.#givingUp = { code, reason };
    this.#deaf = true;
  }

  #tick(now: number): void {
    this.#now = Math.max(this.#now, now);
  }
}
