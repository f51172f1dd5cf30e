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
  readonly #kept = new Queue();
  /** The next byte to send on this connection. */
  #next = 0;
  /** One past the last byte that was ever sent. */
  #high = 0;
  /** Since when the oldest byte in flight waits. */
  #waiting: number | undefined;
  /** Reported unsent, and not decided about. */
  #reported: Unsent;
  /** To be reported, oldest first, none empty: a decision is never about these, for the user has not seen them. */
  #unreported: Unsent[] = [];

  /** `unsent` is what the user already knows to be unsent. */
  constructor(limit: number, unsent: Unsent = NOTHING) {
    this.#limit = limit;
    this.#reported = unsent;
  }

  /** Keeps the bytes. False when they do not all fit; then none is kept, so that no tail is sent without its head. */
  push(bytes: Uint8Array): boolean {
    const undecided = [this.#reported, ...this.#unreported].reduce((sum, { bytes }) => sum + bytes.length, 0);
    const fits = bytes.length <= this.#limit - this.#kept.length - undecided;
    if (fits) this.#kept.push(bytes);
    return fits;
  }

  /** How many bytes are kept. */
  get length(): number {
    return this.#kept.length;
  }

  /** Since when something in flight waits for its ack. */
  get waiting(): number | undefined {
    return this.#waiting;
  }

  /** All that is to be decided about, reported or not. */
  get undecided(): Unsent {
    return this.#unreported.reduce(join, this.#reported);
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
      this.#kept.drop(offset - this.#acked);
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
    this.#reported = join(this.#reported, more);
    return this.#reported;
  }

  /** The user wants what was reported to be typed now. */
  sendUnsent(): void {
    this.#kept.push(this.#reported.bytes);
    this.#reported = NOTHING;
  }

  /** The user does not. */
  discardUnsent(): void {
    this.#reported = NOTHING;
  }

  /** Takes back everything from `offset` on, to be reported. */
  #takeFrom(offset: number): void {
    const bytes = this.#kept.cut(offset - this.#acked);
    const doubtful = Math.max(this.#high - offset, 0);
    this.#high = Math.min(this.#high, offset);
    this.#next = Math.min(this.#next, offset);
    if (bytes.length > 0) this.#unreported.push({ bytes, doubtful });
  }
}

/** Bytes that come at the end and go at the front, without moving the rest each time. */
class Queue {
  #buffer = new Uint8Array();
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  push(bytes: Uint8Array): void {
    if (this.#end + bytes.length > this.#buffer.length) {
      const larger = new Uint8Array(2 * (this.length + bytes.length));
      larger.set(this.#buffer.subarray(this.#start, this.#end));
      [this.#buffer, this.#start, this.#end] = [larger, 0, this.length];
    }
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** A copy of a part. */
  slice(from: number, to: number): Uint8Array {
    return this.#buffer.slice(this.#start + from, this.#start + to);
  }

  /** Removes this many from the front. The last one frees the memory. */
  drop(count: number): void {
    this.#start += count;
    if (this.length > 0) return;
    this.#buffer = new Uint8Array();
    this.#start = this.#end = 0;
  }

  /** Removes and returns all from here on. */
  cut(from: number): Uint8Array {
    const bytes = this.slice(from, this.length);
    this.#end = this.#start + from;
    this.drop(0);
    return bytes;
  }
}

function join(head: Unsent, tail: Unsent): Unsent {
  const bytes = new Uint8Array(head.bytes.length + tail.bytes.length);
  bytes.set(head.bytes);
  bytes.set(tail.bytes, head.bytes.length);
  return { bytes, doubtful: head.doubtful + tail.doubtful };
}
