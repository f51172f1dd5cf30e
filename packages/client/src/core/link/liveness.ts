/** Detects a dead connection: pings the server when it is silent, and probes it when an answer is needed soon. */
import { ATTACHED_WITHIN, HEARTBEAT, LONG_SLEEP, PROBE_AFTER, PROBE_WITHIN, silenceLimit } from "../config.js";

/** The state of the protocol that liveness depends on. */
export interface Context {
  /** Whether the server has yet to accept this connection. */
  readonly greeting: boolean;
  /** Since when input in flight has been waiting for its acknowledgement. */
  readonly unackedSince?: number | undefined;
}

/** Heartbeats and probes, for one connection after another. */
export class Liveness {
  /** Silence after which the client pings, in milliseconds. */
  heartbeat = HEARTBEAT;
  #connectedAt = 0;
  #lastReceived = 0;
  #lastPing: number | undefined;
  #pingCount = 0;
  /** The number of a ping to send, and below of a pong. */
  #pendingPing: number | undefined;
  #pendingPong: number | undefined;
  /** When the connection ends unless something is received before. */
  #probeDeadline: number | undefined;

  handleConnected(now: number): void {
    this.handleDisconnected();
    this.#lastReceived = this.#connectedAt = now;
    this.#lastPing = undefined;
  }

  handleDisconnected(): void {
    this.#pendingPing = this.#pendingPong = this.#probeDeadline = undefined;
  }

  /** A frame was received. */
  handleReceived(now: number): void {
    this.#lastReceived = now;
    this.#probeDeadline = undefined;
  }

  handlePing(n: number): void {
    this.#pendingPong = n;
  }

  /** Pings the server. Returns the number of the ping: a pong of it, or of a later one, answers everything sent before. */
  ping(now: number): number {
    this.#sendPing(now);
    return this.#pingCount;
  }

  /** The machine slept, or the page was hidden. Returns a reason if the connection must be closed. */
  handleWake(slept: number, now: number): string | undefined {
    if (slept >= LONG_SLEEP) return "the machine slept for too long";
    this.#startProbe(now);
    return undefined;
  }

  /** Returns a reason if the connection must be closed. */
  handleTimeout(now: number, context: Context): string | undefined {
    const late = context.greeting && this.#connectedAt + ATTACHED_WITHIN <= now;
    const probeAt = this.#probeAt(context);
    if (this.#probeDeadline !== undefined && this.#probeDeadline <= now) return "no answer to a probe";
    if (late || this.#lastReceived + silenceLimit(this.heartbeat) <= now) return "no message for too long";
    if (probeAt !== undefined && probeAt <= now) this.#startProbe(now);
    else if (this.#pingAt() <= now) this.#sendPing(now);
    return undefined;
  }

  /** When to call {@link handleTimeout}. */
  pollTimeout(context: Context): number {
    const late = context.greeting ? this.#connectedAt + ATTACHED_WITHIN : Infinity;
    const silence = Math.min(this.#lastReceived + silenceLimit(this.heartbeat), this.#pingAt());
    return Math.min(silence, late, this.#probeDeadline ?? Infinity, this.#probeAt(context) ?? Infinity);
  }

  /**
   * The latest time at which a connection that turned out to be dead was lost. A live one would have been pinged or probed
   * then. The loss may be noticed much later, because no timer runs while the machine sleeps.
   */
  lossBound(unackedSince: number | undefined): number {
    const probe = unackedSince === undefined ? Infinity : Math.max(unackedSince, this.#lastReceived) + PROBE_AFTER;
    return Math.min(probe, this.#lastReceived + this.heartbeat);
  }

  /** The next ping or pong to send. */
  pollTransmit(): { type: "ping" | "pong"; n: number } | undefined {
    const [pong, ping] = [this.#pendingPong, this.#pendingPing];
    if (pong !== undefined) {
      this.#pendingPong = undefined;
      return { type: "pong", n: pong };
    }
    this.#pendingPing = undefined;
    return ping === undefined ? undefined : { type: "ping", n: ping };
  }

  #pingAt(): number {
    return Math.max(this.#lastPing ?? this.#lastReceived, this.#lastReceived) + this.heartbeat;
  }

  /** When to start a probe, if there is unacknowledged input and nothing is received. */
  #probeAt(context: Context): number | undefined {
    if (context.unackedSince === undefined || this.#probeDeadline !== undefined) return undefined;
    return Math.max(context.unackedSince, this.#lastReceived) + PROBE_AFTER;
  }

  #startProbe(now: number): void {
    if (this.#probeDeadline === undefined) {
      this.#probeDeadline = now + PROBE_WITHIN;
      this.#sendPing(now);
    }
  }

  #sendPing(now: number): void {
    this.#lastPing = now;
    this.#pingCount += 1;
    this.#pendingPing = this.#pingCount;
  }
}
