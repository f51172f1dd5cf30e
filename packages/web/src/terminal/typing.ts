/** What was typed or pasted, on its way to the connection: what it cannot take yet waits here, bounded. */
import type { NotTaken, TerminalConnection, Unsent } from "@bowline/client";

/** Bytes that wait for room or for a decision; what would exceed it is refused, and the user is told. */
export const WAITING_LIMIT = 8 * 1024 * 1024;
/** How often the rest is offered again, in milliseconds. */
const AGAIN = 40;

const NOTHING: Unsent = { bytes: new Uint8Array(), doubtful: 0 };

/** What a connection is offered. */
type Taker = Pick<TerminalConnection, "input">;

/** Input in order, over all connections of a viewed session. */
export class Typing {
  readonly #taker: () => Taker;
  readonly #refused: (why: NotTaken) => void;
  #rest: Uint8Array[] = [];
  #held: Unsent | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(taker: () => Taker, refused: (why: NotTaken) => void) {
    this.#taker = taker;
    this.#refused = refused;
  }

  /** Bytes that wait here for room. */
  get waiting(): number {
    return lengthOf(this.#rest);
  }

  /** What waits for a decision, if anything. */
  get unsent(): Unsent | undefined {
    return this.#held;
  }

  /** Takes input. It goes out in order. */
  type(data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    if (bytes.length === 0) return;
    if (this.waiting + (this.#held?.bytes.length ?? 0) + bytes.length > WAITING_LIMIT) return this.#refused("full");
    this.#rest.push(bytes);
    if (this.#timer === undefined) this.#offer();
  }

  /**
   * A connection gave this back: it waits for a decision, and so does all that was typed after it and waits for room. The
   * tail of a paste must not go where its head did not.
   */
  hold(unsent: Unsent = NOTHING): void {
    const before = this.#held ?? NOTHING;
    const bytes = join([before.bytes, unsent.bytes, ...this.#rest]);
    if (bytes.length > before.bytes.length) this.#held = { bytes, doubtful: before.doubtful + unsent.doubtful };
    this.#stop();
  }

  /** The user wants what is held to be typed now. */
  send(): void {
    if (this.#held) this.#rest.push(this.#held.bytes);
    this.discard();
    if (this.#timer === undefined) this.#offer();
  }

  /** The user does not. */
  discard(): void {
    this.#held = undefined;
  }

  /** Forgets everything. */
  clear(): void {
    this.#stop();
    this.discard();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#rest = [];
  }

  #offer(): void {
    this.#timer = undefined;
    for (let part = this.#rest[0]; part; part = this.#rest[0]) {
      const taken = this.#taker().input(part);
      if (taken === "read-only" || taken === "ended") {
        this.#stop();
        return this.#refused(taken);
      }
      const count = taken === "full" ? 0 : taken;
      if (count >= part.length) {
        this.#rest.shift();
        continue;
      }
      this.#rest[0] = part.subarray(count);
      this.#timer = setTimeout(() => this.#offer(), AGAIN);
      return;
    }
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(lengthOf(parts));
  parts.reduce((at, part) => (out.set(part, at), at + part.length), 0);
  return out;
}
