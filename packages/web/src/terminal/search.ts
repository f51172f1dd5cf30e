/** Text about a search in a terminal. */

/** The matches that are counted and highlighted; beyond it, xterm.js slows down. */
export const MATCH_LIMIT = 1000;

/** The position of the current match, -1 for none or one that is not counted, and the number of matches up to the limit. */
export interface MatchCount {
  readonly resultIndex: number;
  readonly resultCount: number;
}

/** The position of the current match among all, as text. */
export function matchText({ resultIndex, resultCount }: MatchCount): string {
  if (resultCount === 0) return "No results";
  const total = resultCount.toLocaleString("en") + (resultCount >= MATCH_LIMIT ? "+" : "");
  if (resultIndex >= 0) return `${(resultIndex + 1).toLocaleString("en")} of ${total}`;
  return resultCount === 1 ? "1 result" : `${total} results`;
}

/** Whether this is a regular expression that can be searched for. */
export function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
