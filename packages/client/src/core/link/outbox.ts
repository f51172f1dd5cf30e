/** What was typed and is not known to be written: sent once, resent from where the server says, or given back. */
import { INPUT_FRAME, INPUT_WINDOW } from "../config.js";

/** Everything typed that is not sent by itself: the user decides about all of it at once. */
export interface Unsent {
  /** The bytes, oldest first. */
  readonly bytes: Uint8Array;
  /** This many of them had been sent, and may or may not have been typed. */
  readonly doubtful: number;
}

const NOTHING: Unsent = { bytes: new Uint8Array(), doubtful: 0 };

/** A client's input stream from the first byte that is not known to be written. */
export class Outbox {
  readonly #limit: number;
  /** Written by the server. */
  #acked = 0;
  /** From `acked` on. */
  #kept = new Uint8Array();
  /** The next byte to send on this connection. */
  #next = 0;
  /** One past the last byte that was ever sent. */
  #high = 0;
  /** Since when the oldest byte in flight waits. */
  #waiting: number | undefined;
  /** Reported unsent, and not decided about. */
  #reported = NOTHING;
  /** To be reported, oldest first, none empty: a decision is never about these, for the user has not seen them. */
  #unreported: Unsent[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Keeps as many of the bytes as fit, and says how many. */
  push(bytes: Uint8Array): number {
    const undecided = [this.#reported, ...this.#unreported].reduce((sum, { bytes }) => sum + bytes.length, 0);
    const room = Math.max(this.#limit - this.#kept.length - undecided, 0);
    const taken = Math.min(bytes.length, room);
    this.#kept = concat(this.#kept, bytes.subarray(0, taken));
    return taken;
  }

  /** How many bytes are kept. */
  get length(): number {
    return this.#kept.length;
  }

  /** Since when something in flight waits for its ack. */
  get waiting(): number | undefined {
    return this.#waiting;
  }

  /** The next frame to send. */
  pop(now: number): { offset: number; bytes: Uint8Array } | undefined {
    const room = Math.max(INPUT_WINDOW - (this.#next - this.#acked), 0);
    const length = Math.min(this.#acked + this.#kept.length - this.#next, room, INPUT_FRAME);
    if (length === 0) return undefined;
    const [offset, start] = [this.#next, this.#next - this.#acked];
    this.#next += length;
    this.#high = Math.max(this.#high, this.#next);
    this.#waiting ??= now;
    return { offset, bytes: this.#kept.slice(start, start + length) };
  }

  /** The server has written up to here. False when that was never sent. */
  ack(offset: number, now: number): boolean {
    if (offset > this.#high) return false;
    if (offset > this.#acked) {
      this.#kept = this.#kept.slice(offset - this.#acked);
      this.#acked = offset;
      this.#next = Math.max(this.#next, offset);
      this.#waiting = this.#next > offset ? now : undefined;
    }
    return true;
  }

  /** The connection is gone: what was in flight may be sent again. */
  disconnected(): void {
    this.#waiting = undefined;
  }

  /** A new connection, where the server wants the byte `input` next. With `hold`, what it does not have is not sent. */
  resume(input: number | null, hold: boolean): void {
    if (input !== null && input >= this.#acked && input <= this.#high) {
      this.#next = input;
      if (!hold) return;
      // What the server does not have, it has not typed.
      this.#high = input;
      this.#takeFrom(input);
      return;
    }
    // It does not know this stream: nobody can say which of the bytes in flight were typed.
    if (hold || this.#high > this.#acked) this.takeAll();
    this.#acked = this.#next = this.#high = input ?? 0;
  }

  /** Takes back everything that is not known to be written. */
  takeAll(): void {
    this.#takeFrom(this.#acked);
  }

  /** All that is to be decided about, if there is more of it than was reported before. */
  pollUnsent(): Unsent | undefined {
    const more = this.#unreported.shift();
    if (more === undefined) return undefined;
    const { bytes, doubtful } = this.#reported;
    this.#reported = { bytes: concat(bytes, more.bytes), doubtful: doubtful + more.doubtful };
    return this.#reported;
  }

  /** The user wants what was reported to be typed now. */
  sendUnsent(): void {
    this.#kept = concat(this.#kept, this.#reported.bytes);
    this.#reported = NOTHING;
  }

  /** The user does not. */
  discardUnsent(): void {
    this.#reported = NOTHING;
  }

  /** Takes back everything from `offset` on, to be reported. */
  #takeFrom(offset: number): void {
    const bytes = this.#kept.slice(offset - this.#acked);
    this.#kept = this.#kept.slice(0, offset - this.#acked);
    const doubtful = Math.max(this.#high - offset, 0);
    this.#high = Math.min(this.#high, offset);
    this.#next = Math.min(this.#next, offset);
    if (bytes.length > 0) this.#unreported.push({ bytes, doubtful });
  }
}

function concat(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(head.length + tail.length);
  out.set(head);
  out.set(tail, head.length);
  return out;
}
