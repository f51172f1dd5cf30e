/** The part of a conversation that a client has: from the oldest page that it read to the newest event. */
import { PAST_EPOCHS } from "../config.js";
import { epochBegun, Position } from "../follow/position.js";
import { ShapeError } from "../shape.js";
import type { ConversationState, Cursor, Epoch } from "../wire.js";
import { type AgentRecord, readRecord, type UnreadRecord } from "./event.js";
import { fold } from "./fold.js";

/** A page of history as `Api.history` returns it. */
export interface HistoryPage {
  readonly epoch: Epoch;
  readonly start: number;
  readonly next: number;
  readonly events: readonly UnreadRecord[];
  readonly more: boolean;
  readonly state?: ConversationState;
}

/** Events of a conversation, in order. */
export interface ConversationPage {
  readonly records: readonly AgentRecord[];
  /** Whether there are older events than these. */
  readonly more: boolean;
}

/** What a client has of a conversation. */
export class Conversation {
  #cursor: Cursor;
  #start: number;
  #hasOlder: boolean;
  #state: ConversationState;
  /** Epochs that the conversation has left behind, oldest first. */
  #past: readonly Epoch[];

  /** Begins with the last page. `earlier` is what the client had before, whose epochs are over. Throws if it is another page. */
  constructor(page: HistoryPage, earlier?: Conversation) {
    checkTiles(page);
    if (!page.state) throw new ShapeError("the page does not end where the journal does");
    this.#cursor = { epoch: page.epoch, offset: page.next };
    this.#start = page.start;
    this.#hasOlder = page.more;
    this.#state = page.state;
    const known = earlier ? [...earlier.#past, earlier.#cursor.epoch] : [];
    this.#past = pastEpochs([...known, ...epochsOf(page)], page.epoch);
  }

  /** From where the events continue. */
  get cursor(): Cursor {
    return this.#cursor;
  }

  get state(): ConversationState {
    return this.#state;
  }

  /** The number of the oldest event that the client has. */
  get start(): number {
    return this.#start;
  }

  /** Whether there are older events than the client has. */
  get hasOlder(): boolean {
    return this.#hasOlder;
  }

  /** The client has dropped all events before `seq`; they are older ones again. */
  forgetBefore(seq: number): void {
    if (seq <= this.#start || seq > this.#cursor.offset) return;
    this.#start = seq;
    this.#hasOlder = true;
  }

  /** Adds the next event, whose position was checked, and returns what was read of it. */
  add(unread: UnreadRecord): AgentRecord {
    // An event that begins an epoch does so in a shape that this version does not know, too.
    const epoch = epochBegun(unread.event) ?? this.#cursor.epoch;
    if (epoch !== this.#cursor.epoch) this.#past = pastEpochs([...this.#past, this.#cursor.epoch], epoch);
    this.#cursor = { epoch, offset: unread.seq + 1 };
    const record = readRecord(unread);
    this.#state = fold(this.#state, record);
    return record;
  }

  /** The page before the oldest event. Throws if it is another page, or of another epoch, whose numbers may mean other events. */
  addOlder(page: HistoryPage): ConversationPage {
    checkTiles(page);
    if (page.epoch !== this.#cursor.epoch) throw new ShapeError("the session was restarted or repaired meanwhile");
    if (page.next !== this.#start || (page.more && page.start === page.next)) {
      throw new ShapeError(`the page does not end before ${this.#start}`);
    }
    this.#start = page.start;
    this.#hasOlder = page.more;
    this.#past = pastEpochs([...epochsOf(page), ...this.#past], this.#cursor.epoch);
    return readPage(page);
  }

  /** Whether a session's description is newer than the events that were added, see {@link isNewer}. */
  isNewer(description: { readonly epoch: Epoch; readonly offset: number }): boolean {
    return isNewer(description, this.#cursor, this.#past);
  }
}

/**
 * Whether a description of a session is newer than a follower, who is at `cursor` and has left the epochs `past` behind.
 * Descriptions take another way than events and can be late: one that is not newer must not replace what was folded.
 *
 * An epoch that is not known may be a later or an earlier one, so the offset decides: it grows over restarts. After a repair
 * that cut events off, a newer description can have a lower one; then the follower starts again from a page anyway.
 */
export function isNewer(
  description: { readonly epoch: Epoch; readonly offset: number },
  cursor: Cursor,
  past: readonly Epoch[],
): boolean {
  return description.offset > cursor.offset && !past.includes(description.epoch);
}

/** Parses the events of a page. */
export function readPage({ events, more }: HistoryPage): ConversationPage {
  return { records: events.map(readRecord), more };
}

/** Throws unless the events are all those from `start` to `next`. */
function checkTiles({ epoch, start, next, events }: HistoryPage): void {
  const position = new Position({ epoch, offset: start });
  for (const record of events) {
    const refused = position.handleRecord(record);
    if (refused !== undefined) throw new ShapeError(`event ${record.seq} of the page: ${refused}`);
  }
  if (position.cursor?.offset !== next) throw new ShapeError("the page ends before its last event");
}

function epochsOf({ events }: HistoryPage): Epoch[] {
  return events.flatMap(({ event }) => epochBegun(event) ?? []);
}

/** The latest of these epochs, without the current one. */
function pastEpochs(epochs: readonly Epoch[], current: Epoch): Epoch[] {
  return [...new Set(epochs)].filter((epoch) => epoch !== current).slice(-PAST_EPOCHS);
}
