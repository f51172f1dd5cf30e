/** Is the other end there: pings when it is silent, probes when it matters now. */
import { ATTACHED_WITHIN, death, HEARTBEAT, LONG_SLEEP, PROBE_AFTER, PROBE_WITHIN } from "../config.js";

/** What a pulse must know of the protocol that it belongs to. */
export interface PulseContext {
  /** The first answer of this connection has not come yet. */
  readonly greeting: boolean;
  /** Since when something in flight waits for its acknowledgement. */
  readonly waiting?: number | undefined;
}

/** The signs of life of one connection after the other. */
export class Pulse {
  /** Silence after which a side pings. */
  heartbeat = HEARTBEAT;
  #heard = 0;
  #connected = 0;
  #pinged: number | undefined;
  #pings = 0;
  #ping: number | undefined;
  #pong: number | undefined;
  /** A word must have come by then. */
  #probe: number | undefined;

  /** A new connection. */
  handleConnected(now: number): void {
    this.handleDisconnected();
    this.#heard = this.#connected = now;
    this.#pinged = undefined;
  }

  /** The connection is gone. */
  handleDisconnected(): void {
    this.#ping = this.#pong = this.#probe = undefined;
  }

  /** Something came in. */
  handleHeard(now: number): void {
    this.#heard = now;
    this.#probe = undefined;
  }

  /** A ping came in. */
  handlePing(n: number): void {
    this.#pong = n;
  }

  /** The machine slept, or the page was hidden. Returns why the connection is to be given up, if it is. */
  handleWake(slept: number, now: number): string | undefined {
    if (slept >= LONG_SLEEP) return "asleep for too long";
    this.#startProbe(now);
    return undefined;
  }

  /** Time has passed. Returns why the connection is to be given up, if it is. */
  handleTimeout(now: number, context: PulseContext): string | undefined {
    const late = context.greeting && this.#connected + ATTACHED_WITHIN <= now;
    const probeAt = this.#probeAt(context);
    if (this.#probe !== undefined && this.#probe <= now) return "no answer to a probe";
    if (late || this.#heard + death(this.heartbeat) <= now) return "silence";
    if (probeAt !== undefined && probeAt <= now) this.#startProbe(now);
    else if (this.#pingAt() <= now) this.#sendPing(now);
    return undefined;
  }

  /** When {@link handleTimeout} is to be called. */
  pollTimeout(context: PulseContext): number {
    const late = context.greeting ? this.#connected + ATTACHED_WITHIN : Infinity;
    const silence = Math.min(this.#heard + death(this.heartbeat), this.#pingAt());
    return Math.min(silence, late, this.#probe ?? Infinity, this.#probeAt(context) ?? Infinity);
  }

  /**
   * A live line is heard of until then, for it would be asked. One that is gone was so by then, whenever that is found out:
   * nobody asks while the machine sleeps.
   */
  answerDue(waiting: number | undefined): number {
    const typed = waiting === undefined ? Infinity : Math.max(waiting, this.#heard) + PROBE_AFTER;
    return Math.min(typed, this.#heard + this.heartbeat);
  }

  /** The next ping or pong to send. */
  pollTransmit(): { type: "ping" | "pong"; n: number } | undefined {
    const [pong, ping] = [this.#pong, this.#ping];
    if (pong !== undefined) {
      this.#pong = undefined;
      return { type: "pong", n: pong };
    }
    this.#ping = undefined;
    return ping === undefined ? undefined : { type: "ping", n: ping };
  }

  #pingAt(): number {
    return Math.max(this.#pinged ?? this.#heard, this.#heard) + this.heartbeat;
  }

  /** When something without an ack, and nothing heard, calls for a probe. */
  #probeAt(context: PulseContext): number | undefined {
    if (context.waiting === undefined || this.#probe !== undefined) return undefined;
    return Math.max(context.waiting, this.#heard) + PROBE_AFTER;
  }

  #startProbe(now: number): void {
    if (this.#probe === undefined) {
      this.#probe = now + PROBE_WITHIN;
      this.#sendPing(now);
    }
  }

  #sendPing(now: number): void {
    this.#pinged = now;
    this.#pings += 1;
    this.#ping = this.#pings;
  }
}
