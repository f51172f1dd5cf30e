/** How much output the terminal has rendered on this connection, and how much of that is acknowledged. */
import { RENDERED_IDLE } from "../config.js";

/** Decides when to acknowledge output. A new one is made for each connection. */
export class OutputAcks {
  /** The offset up to which the caller was given output, not counting an incomplete snapshot. */
  polled = 0;
  /** The offset of a complete snapshot that must be acknowledged as soon as it is rendered. */
  snapshot: number | undefined;
  /** When the next acknowledgement is due. */
  due: number | undefined;
  readonly #every: number;
  #rendered: number;
  #acked: number;

  constructor(every: number, offset = 0) {
    this.#every = every;
    this.#rendered = this.#acked = offset;
  }

  /** The terminal has processed everything up to `offset`. */
  handleRendered(offset: number, now: number): void {
    this.#rendered = Math.max(this.#rendered, Math.min(offset, this.polled));
    const snapshot = this.snapshot !== undefined && this.snapshot <= this.#rendered;
    if (snapshot || this.#rendered - this.#acked >= this.#every) this.due = now;
    else if (this.#rendered > this.#acked) this.due ??= now + RENDERED_IDLE;
  }

  /** The offset to acknowledge now, if an acknowledgement is due. */
  pollAck(now: number): number | undefined {
    if (this.due === undefined || this.due > now) return undefined;
    this.due = undefined;
    if (this.snapshot !== undefined && this.snapshot <= this.#rendered) this.snapshot = undefined;
    this.#acked = this.#rendered;
    return this.#rendered;
  }
}
