/** A follower's position in a journal, and the rules by which it moves. */
import { isEpoch } from "../ids.js";
import type { Cursor, Epoch, Verdict } from "../wire.js";

/**
 * The epoch and the number of the next event. Without them, a follower starts where the server says.
 *
 * What does not continue the position is refused with a reason, and leaves it as it was: the follower drops the connection,
 * and resumes.
 */
export class Position {
  #cursor: Cursor | undefined;

  constructor(cursor?: Cursor) {
    this.#cursor = cursor;
  }

  /** Where a new connection resumes. */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  /**
   * The server says from where it sends events. With `exact` that is the next event; with `snapshot` it may be any other, and
   * what came before has to be read again. Returns a reason if it is refused.
   */
  handleVerdict(verdict: Verdict, epoch: Epoch, offset: number): string | undefined {
    if (verdict === "exact" && this.#cursor?.offset !== offset) {
      return "an exact resume from another event than the next one";
    }
    this.#cursor = { epoch, offset };
    return undefined;
  }

  /**
   * An event arrived. It must begin with the expected number; then the number after its last is expected. Returns a reason if
   * it is refused.
   *
   * If it begins an epoch, that is the cursor's from now on, even if the verdict named a later one: a follower does not know
   * where the journal ended then, and the server accepts the cursor of an earlier epoch as well.
   */
  handleRecord({ seq, from = seq, event }: { seq: number; from?: number; event: unknown }): string | undefined {
    if (!this.#cursor) return "an event before the verdict";
    const { epoch, offset } = this.#cursor;
    if (from > offset) return "events are missing";
    if (from < offset) return "an event that was received before";
    if (seq < from || !Number.isSafeInteger(seq + 1)) return "an event with an invalid range";
    this.#cursor = { epoch: epochBegun(event) ?? epoch, offset: seq + 1 };
    return undefined;
  }
}

/** The epoch that begins with this event, if one does. */
export function epochBegun(event: unknown): Epoch | undefined {
  if (typeof event !== "object" || event === null) return undefined;
  const { type, epoch } = event as { type?: unknown; epoch?: unknown };
  const begins = type === "started" || type === "repaired";
  return begins && typeof epoch === "string" && isEpoch(epoch) ? epoch : undefined;
}
