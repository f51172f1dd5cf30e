/** How long to wait before the next dial: doubling, capped, with jitter that is passed in. */

/** Jitter moves a delay by at most this share of it. */
export const JITTER = 0.2;

/** When to dial again, and when to stop. */
export interface Backoff {
  /** The first delay, in milliseconds. */
  readonly base: number;
  /** The longest delay, before jitter. */
  readonly cap: number;
  /** Failures in a row after which it gives up; null for never. */
  readonly tries: number | null;
}

/** For programs: 1 s, at most 30 s, 6 tries. */
export const NATIVE: Backoff = { base: 1000, cap: 30_000, tries: 6 };
/** For pages: 0.5 s, at most 10 s, 12 tries. */
export const BROWSER: Backoff = { base: 500, cap: 10_000, tries: 12 };

/** The delay before try `n` (from 0), with jitter in [-1, 1]; nothing when the tries are used up. */
export function delay(backoff: Backoff, n: number, jitter: number): number | undefined {
  if (backoff.tries !== null && n >= backoff.tries) return undefined;
  const doubled = Math.min(backoff.base * 2 ** n, backoff.cap);
  const bounded = Number.isFinite(jitter) ? Math.min(Math.max(jitter, -1), 1) : 0;
  return doubled * (1 + JITTER * bounded);
}
