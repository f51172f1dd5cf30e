/** Waiting for facts. */

/** No fact takes this long to become true, even on a busy machine. */
const PATIENCE = 45_000;
/** How often one looks. */
const EVERY = 15;

/** Waits until `fact` gives something, and says which fact never came true. `more` adds what is the case instead. */
export async function until<T>(
  what: string,
  fact: () => T | Promise<T>,
  more: () => unknown = () => "",
  patience = PATIENCE,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + patience;
  for (;;) {
    const found = await fact();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`never came true: ${what}\n${String(await more())}`);
    await new Promise((next) => setTimeout(next, EVERY));
  }
}
