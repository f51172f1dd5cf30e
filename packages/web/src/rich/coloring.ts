/** Colours code without holding up the page: one block after the other, with pauses between them. */
import type { Piece } from "./highlight.ts";

let queue: Promise<unknown> = Promise.resolve();

/** The code in coloured pieces; undefined if that fails, or `signal` aborts first. */
export function colored(code: string, language: string, signal: AbortSignal): Promise<readonly Piece[] | undefined> {
  const result = queue.then(async () => {
    if (signal.aborted) return undefined;
    const { highlight } = await import("./highlight.ts");
    await new Promise((resolve) => setTimeout(resolve));
    return signal.aborted ? undefined : highlight(code, language);
  });
  queue = result.catch(() => undefined);
  // The grammars could not be loaded: the code stays as it is.
  return result.catch(() => undefined);
}
