/** How long to wait before the next attempt: exponential backoff with a cap and jitter. */

/** Jitter changes a delay by at most this fraction of it. */
export const JITTER = 0.2;

/** When to reconnect, and when to stop trying. */
export interface Backoff {
  /** The first delay, in milliseconds. Each failure doubles it. */
  readonly base: number;
  /** The longest delay, in milliseconds, before jitter. */
  readonly cap: number;
  /** Consecutive failures after which it gives up; null for never. */
  readonly tries: number | null;
}

/** For programs: delays from 1 s to 30 s, 6 attempts. */
export const NATIVE: Backoff = { base: 1000, cap: 30_000, tries: 6 };
/** For pages: delays from 0.5 s to 10 s, 12 attempts. */
export const BROWSER: Backoff = { base: 500, cap: 10_000, tries: 12 };

/** The delay in milliseconds before attempt `n` (from 0), with `jitter` in [-1, 1]; `undefined` if no attempt is left. */
export function delay(backoff: Backoff, n: number, jitter: number): number | undefined {
  if (backoff.tries !== null && n >= backoff.tries) return undefined;
  const doubled = Math.min(backoff.base * 2 ** n, backoff.cap);
  const bounded = Number.isFinite(jitter) ? Math.min(Math.max(jitter, -1), 1) : 0;
  return doubled * (1 + JITTER * bounded);
}
