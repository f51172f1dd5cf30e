/** A clock that never goes back and counts sleep. */

/** Wall time that runs away from the steady clock by more than this was slept through, or set. */
const SLACK = 1_000;

/**
 * Combines a steady clock, which may stand still while the machine sleeps, with the wall clock, which may be set back: time
 * that only the wall clock saw is added, time that it takes back is ignored.
 */
export function sleepAwareClock(steady: () => number, wall: () => number): () => number {
  let apart = wall() - steady();
  let slept = 0;
  return () => {
    const now = steady();
    const ahead = wall() - now - apart;
    if (Math.abs(ahead) > SLACK) {
      apart += ahead;
      slept += Math.max(ahead, 0);
    }
    return now + slept;
  };
}
