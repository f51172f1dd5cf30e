/** A clock that never goes back and includes time during which the machine slept. */

/** If the clocks drift apart by more than this many milliseconds, the machine slept or the wall clock was set. */
const TOLERANCE = 1_000;

/**
 * Combines a monotonic clock, which may stop while the machine sleeps, with the wall clock, which may be set. A jump forward of
 * the wall clock is added, a jump back is ignored.
 */
export function sleepAwareClock(monotonic: () => number, wall: () => number): () => number {
  let difference = wall() - monotonic();
  let slept = 0;
  return () => {
    const now = monotonic();
    const jump = wall() - now - difference;
    if (Math.abs(jump) > TOLERANCE) {
      difference += jump;
      slept += Math.max(jump, 0);
    }
    return now + slept;
  };
}
