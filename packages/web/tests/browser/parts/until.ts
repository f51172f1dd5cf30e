/** Waiting for a condition. */

/** Milliseconds; longer than any condition takes on a busy machine. */
const TIMEOUT = 45_000;
/** Milliseconds between checks. */
const INTERVAL = 15;

/**
 * Waits until `check` returns a value other than undefined, null or false. `details` adds the actual state to
 * the timeout error.
 */
export async function until<T>(
  description: string,
  check: () => T | Promise<T>,
  details: () => unknown = () => "",
  timeout = TIMEOUT,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + timeout;
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`timed out waiting for: ${description}\n${String(await details())}`);
    await new Promise((next) => setTimeout(next, INTERVAL));
  }
}
