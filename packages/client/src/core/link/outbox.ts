/** Typed bytes that the server has not acknowledged: they are sent, resent after a reconnect, or reported as unsent. */
import { INPUT_FRAME, INPUT_WINDOW } from "../config.js";

/** Typed bytes that are not sent automatically. The user sends or discards all of them at once. */
export interface Unsent {
  /** The bytes, oldest first. */
  readonly bytes: Uint8Array;
  /** How many of them were sent earlier, and so may already have reached the program. */
  readonly doubtful: number;
}

const NO_BYTES: Unsent = { bytes: new Uint8Array(), doubtful: 0 };

/** A client's input stream, from the first byte that the server has not acknowledged. */
export class Outbox {
  readonly #limit: number;
  /** The offset up to which the server has acknowledged input. */
  #acked = 0;
  /** The bytes from `#acked` on. */
  readonly #kept = new ByteQueue();
  /** The offset of the next byte to send on this connection. */
  #next = 0;
  /** One past the last byte that was sent on any connection. */
  #maxSent = 0;
  /** When the oldest byte in flight was sent, or the last acknowledgement was received, if that is later. */
  #unackedSince: number | undefined;
  /** Reported to the user as unsent, and not decided about yet. */
  #reported: Unsent;
  /** Not reported yet, oldest first, none of them empty. A decision does not include these, as the user has not seen them. */
  #unreported: Unsent[] = [];

  /** `unsent` are bytes that the user already knows to be unsent. */
  constructor(limit: number, unsent: Unsent = NO_BYTES) {
    this.#limit = limit;
    this.#reported = unsent;
  }

  /** Adds bytes. Returns false, and keeps none of them, if they do not all fit: half a command must not be sent. */
  push(bytes: Uint8Array): boolean {
    const undecided = [this.#reported, ...this.#unreported].reduce((sum, { bytes }) => sum + bytes.length, 0);
    const fits = bytes.length <= this.#limit - this.#kept.length - undecided;
    if (fits) this.#kept.push(bytes);
    return fits;
  }

  /** The number of bytes that will be sent automatically. */
  get length(): number {
    return this.#kept.length;
  }

  /** Since when a byte in flight has been waiting for its acknowledgement. */
  get unackedSince(): number | undefined {
    return this.#unackedSince;
  }

  /** All unsent bytes that the user has not decided about, reported or not. */
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
    this.#maxSent = Math.max(this.#maxSent, this.#next);
    this.#unackedSince ??= now;
    return { offset, bytes: this.#kept.slice(start, start + length) };
  }

  /** The server acknowledges input up to `offset`. Returns false if that was never sent. */
  handleAck(offset: number, now: number): boolean {
    if (offset > this.#maxSent) return false;
    if (offset > this.#acked) {
      this.#kept.drop(offset - this.#acked);
      this.#acked = offset;
      this.#next = Math.max(this.#next, offset);
      this.#unackedSince = this.#next > offset ? now : undefined;
    }
    return true;
  }

  handleDisconnected(): void {
    this.#unackedSince = undefined;
  }

  /**
   * Starts a new connection on which the server expects the byte at offset `input` next; null if it does not know this
   * stream. With `hold`, bytes that it does not have become unsent.
   */
  resume(input: number | null, hold: boolean): void {
    if (input !== null && input >= this.#acked && input <= this.#maxSent) {
      this.#next = input;
      if (!hold) return;
      // These were sent, but the server says that it does not have them: they are not doubtful.
      this.#maxSent = input;
      this.#withdrawFrom(input);
      return;
    }
    // The server does not know this stream, so nothing tells which of the bytes in flight it has written.
    if (hold || this.#maxSent > this.#acked) this.withdrawAll();
    this.#acked = this.#next = this.#maxSent = input ?? 0;
  }

  /** Makes all unacknowledged bytes unsent. */
  withdrawAll(): void {
    this.#withdrawFrom(this.#acked);
  }

  /** Returns all unsent bytes if there are new ones to report. */
  pollUnsent(): Unsent | undefined {
    const more = this.#unreported.shift();
    if (more === undefined) return undefined;
    this.#reported = join(this.#reported, more);
    return this.#reported;
  }

  /** Queues the reported bytes for sending. */
  sendUnsent(): void {
    this.#kept.push(this.#reported.bytes);
    this.#reported = NO_BYTES;
  }

  /** Drops the reported bytes. */
  discardUnsent(): void {
    this.#reported = NO_BYTES;
  }

  /** Makes all bytes from `offset` on unsent. */
  #withdrawFrom(offset: number): void {
    const bytes = this.#kept.cut(offset - this.#acked);
    const doubtful = Math.max(this.#maxSent - offset, 0);
    this.#maxSent = Math.min(this.#maxSent, offset);
    this.#next = Math.min(this.#next, offset);
    if (bytes.length > 0) this.#unreported.push({ bytes, doubtful });
  }
}

/** A byte queue. Neither `push` nor `drop` copies all of it each time. */
class ByteQueue {
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

  /** Copies a range. */
  slice(from: number, to: number): Uint8Array {
    return this.#buffer.slice(this.#start + from, this.#start + to);
  }

  /** Removes bytes from the front. Frees the memory when the queue is empty. */
  drop(count: number): void {
    this.#start += count;
    if (this.length > 0) return;
    this.#buffer = new Uint8Array();
    this.#start = this.#end = 0;
  }

  /** Removes and returns all bytes from index `from` on. */
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
