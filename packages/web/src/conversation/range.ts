/**
 * Which of the loaded items are in the page. A long conversation has only some of them there: the newest, or those around
 * what the user reads.
 */

/** Items in the page while the newest are shown. */
export const LATEST = 100;
/** Items that are added when the user comes near an end of what is in the page. */
export const STEP = 60;
/** Items in the page at most. */
export const MOST = 260;

export interface Range {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

interface Keyed {
  readonly key: string;
}

/** The items in the page. `first` is the key of the first of them; the newest are shown if it is undefined or not loaded. */
export function rangeOf(items: readonly Keyed[], first: string | undefined): Range {
  const start = first === undefined ? -1 : items.findIndex(({ key }) => key === first);
  if (start < 0) return { start: Math.max(items.length - LATEST, 0), end: items.length };
  return { start, end: Math.min(start + MOST, items.length) };
}

/** The first item after the range was moved towards older items, if there are any. */
export function firstOfOlder(items: readonly Keyed[], { start }: Range): string | undefined {
  return start > 0 ? items[Math.max(start - STEP, 0)]?.key : undefined;
}

/** The first item after the range was moved towards newer items, if some are not in the page. */
export function firstOfNewer(items: readonly Keyed[], { start, end }: Range): string | undefined {
  if (end >= items.length) return undefined;
  return items[Math.min(start + STEP, items.length - 1)]?.key;
}
