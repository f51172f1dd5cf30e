/** What was typed or pasted, on its way to the connection: what it cannot take yet waits here, bounded. */
import type { NotTaken, TerminalConnection, Unsent } from "@bowline/client";

/** Bytes that wait for room or for a decision; what would exceed it is refused, and the user is told. */
export const WAITING_LIMIT = 8 * 1024 * 1024;
/** How often the rest is offered to an open connection, in milliseconds. */
const AGAIN = 40;

const NOTHING: Unsent = { bytes: new Uint8Array(), doubtful: 0 };

/** What takes input. */
type Taker = Pick<TerminalConnection, "input" | "state">;

/** Input in order, over all connections of a viewed session. */
export class Typing {
  readonly #taker: () => Taker | undefined;
  readonly #refused: (why: NotTaken) => void;
  #rest: Uint8Array[] = [];
  #held: Unsent | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(taker: () => Taker | undefined, refused: (why: NotTaken) => void) {
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
    if (this.#timer === undefined) this.offer();
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
    if (this.#timer === undefined) this.offer();
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

  /** Offers what waits; to be called when there is a connection, and when it opens. Until then it takes what it keeps, and no more. */
  offer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const taker = this.#taker();
    for (let part = this.#rest[0]; taker && part; part = this.#rest[0]) {
      const taken = taker.input(part);
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
      if (taker.state.name === "open") this.#timer = setTimeout(() => this.offer(), AGAIN);
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
