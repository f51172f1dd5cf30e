/** The journal of a simulated agent session, with its lives and repairs. */
import { EMPTY_CONVERSATION, fold, readRecord } from "../../src/core/index.js";
import type { Cursor, ConversationState, EventPage, EventRecord } from "../../src/index.js";

/** A text of the agent, one piece for each event. */
export const piece = (delta: string, block = "m") => ({ type: "text", run: null, block, delta });

export class Journal {
  readonly id: string;
  /** The other machine that the session belongs to. */
  host: string | undefined;
  readonly events: any[] = [];
  /** Where each epoch began, oldest first. */
  #epochs: { epoch: string; start: number }[] = [];
  #folded: { key: string; state: ConversationState } | undefined;
  static #count = 0;

  constructor(id: string) {
    this.id = id;
    this.restart();
  }

  get epoch(): string {
    return this.#epochs.at(-1)!.epoch;
  }

  get end(): number {
    return this.events.length;
  }

  append(...events: object[]): void {
    this.events.push(...events);
  }

  /** The session starts again. */
  restart(): void {
    this.#begin({ type: "started", pid: 1, version: "0.1.0" });
  }

  /** The last events are lost, and their numbers are used again. */
  repair(lost: number): void {
    this.events.splice(Math.max(this.end - lost, 1));
    this.#begin({ type: "repaired" });
  }

  #begin(event: object): void {
    const epoch = (++Journal.#count).toString(16).padStart(8, "0");
    // An epoch whose beginning was lost is known no more.
    this.#epochs = [...this.#epochs.filter(({ start }) => start < this.end), { epoch, start: this.end }];
    this.events.push({ ...event, epoch });
  }

  /** The server's answer to a cursor. */
  verdict(cursor: Cursor | undefined): { verdict: "exact" | "snapshot"; reason?: string; seq: number } {
    if (!cursor) return { verdict: "snapshot", reason: "fresh", seq: this.end };
    const known = this.#epochs.findIndex(({ epoch }) => epoch === cursor.epoch);
    if (known < 0) return { verdict: "snapshot", reason: "epoch", seq: this.end };
    const end = this.#epochs[known + 1]?.start ?? this.end;
    if (cursor.offset > end) return { verdict: "snapshot", reason: "ahead", seq: this.end };
    return { verdict: "exact", seq: cursor.offset };
  }

  /** The next record from a number on, before `to`. At most `join` pieces of one text are sent as one. */
  record(first: number, to: number, join: number): EventRecord {
    let event = this.events[first];
    let seq = first;
    while (seq + 1 < to && seq - first + 1 < join && this.#continues(seq + 1)) {
      event = { ...event, delta: event.delta + this.events[++seq].delta };
    }
    return { seq, ...(seq > first ? { from: first } : {}), at: `t${seq}`, event };
  }

  #continues(n: number): boolean {
    const [before, event] = [this.events[n - 1], this.events[n]];
    return event.type === "text" && before.type === "text" && before.block === event.block;
  }

  records(start: number, end: number, join = 1): EventRecord[] {
    const records: EventRecord[] = [];
    for (let next = start; next < end; next = records.at(-1)!.seq + 1) records.push(this.record(next, end, join));
    return records;
  }

  page({ before = this.end, limit = 200 }: { before?: number; limit?: number }): EventPage {
    const next = Math.min(before, this.end);
    const start = Math.max(next - limit, 0);
    const state = next === this.end ? { state: this.state() } : {};
    return { epoch: this.epoch, start, next, events: this.records(start, next, 64), more: start > 0, ...state };
  }

  /** Folded from scratch, once for each change. */
  state(): ConversationState {
    const key = `${this.epoch} ${this.end}`;
    if (this.#folded?.key !== key) {
      const state = this.records(0, this.end).map(readRecord).reduce(fold, EMPTY_CONVERSATION);
      this.#folded = { key, state };
    }
    return this.#folded.state;
  }
}
