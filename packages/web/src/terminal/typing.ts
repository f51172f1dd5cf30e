/** What was typed or pasted, on its way to the connection: what it cannot take yet waits here, bounded. */
import type { NotTaken, TerminalConnection } from "@bowline/client";

/** Bytes that wait for room; what would exceed it is refused, and the user is told. */
export const WAITING_LIMIT = 8 * 1024 * 1024;
/** How often the rest is offered again, in milliseconds. */
const AGAIN = 40;

/** What a connection is offered. */
type Taker = Pick<TerminalConnection, "input">;

/** Input in order. */
export class Typing {
  readonly #taker: () => Taker;
  readonly #refused: (why: NotTaken) => void;
  #rest: Uint8Array[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(taker: () => Taker, refused: (why: NotTaken) => void) {
    this.#taker = taker;
    this.#refused = refused;
  }

  /** Bytes that wait here. */
  get waiting(): number {
    return this.#rest.reduce((sum, part) => sum + part.length, 0);
  }

  /** Takes input. It goes out in order. */
  type(data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    if (bytes.length === 0) return;
    if (this.waiting + bytes.length > WAITING_LIMIT) return this.#refused("full");
    this.#rest.push(bytes);
    if (this.#timer === undefined) this.#offer();
  }

  /** Forgets what waits. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#rest = [];
  }

  #offer(): void {
    this.#timer = undefined;
    for (let part = this.#rest[0]; part; part = this.#rest[0]) {
      const taken = this.#taker().input(part);
      if (taken === "read-only" || taken === "ended") {
        this.clear();
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
