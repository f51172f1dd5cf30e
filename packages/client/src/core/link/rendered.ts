/** What the viewer's terminal has taken on this connection, and what the server knows of it. */
import { RENDERED_IDLE } from "../config.js";

/** Output from its delivery to its acknowledgement. */
export class Rendered {
  /** How far the caller was given output, also while a later snapshot is half given. */
  polled = 0;
  /** The offset of a snapshot that is to be acknowledged at once. */
  snapshot: number | undefined;
  /** When to acknowledge what is rendered. */
  due: number | undefined;
  readonly #every: number;
  #offset: number;
  #acked: number;

  constructor(every: number, offset = 0) {
    this.#every = every;
    this.#offset = this.#acked = offset;
  }

  /** The terminal took everything up to here. */
  handleRendered(offset: number, now: number): void {
    this.#offset = Math.max(this.#offset, Math.min(offset, this.polled));
    const snapshot = this.snapshot !== undefined && this.snapshot <= this.#offset;
    if (snapshot || this.#offset - this.#acked >= this.#every) this.due = now;
    else if (this.#offset > this.#acked) this.due ??= now + RENDERED_IDLE;
  }

  /** The acknowledgement that is due. */
  pollAck(now: number): number | undefined {
    if (this.due === undefined || this.due > now) return undefined;
    this.due = undefined;
    if (this.snapshot !== undefined && this.snapshot <= this.#offset) this.snapshot = undefined;
    this.#acked = this.#offset;
    return this.#offset;
  }
}
