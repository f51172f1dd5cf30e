/** Limits how much Markdown is parsed at once. The time that the parser takes grows with the square of some counts. */

/** Characters that are parsed first, and those of the longest block that is parsed at all. */
export const WINDOW = 8 * 1024;
export const MAX_BLOCK = 32 * 1024;
const MAX_LINES = 1000;
/** Characters that begin or end a span: emphasis, links, HTML. */
const MAX_MARKS = 1500;
/** Lists and quotes that begin or go on, on all lines together and on one. Each is a level of the parser's stack. */
const MAX_CONTAINERS = 1500;
const MAX_DEPTH = 24;

export interface Window {
  readonly end: number;
  /** Whether it ends where a limit was reached; then a longer one has the same end. */
  readonly limited: boolean;
}

/** Where to stop parsing a text from `start` on: after a line, or at the end of the text. */
export function windowFrom(text: string, start: number, size: number): Window {
  let [lines, marks, containers] = [0, 0, 0];
  for (let line = start; line < text.length;) {
    const feed = text.indexOf("\n", line);
    const next = feed < 0 ? text.length : feed + 1;
    if (next - start > size) return { end: line, limited: size >= MAX_BLOCK };
    const depth = depthOf(text, line);
    lines += 1;
    marks += marksIn(text, line, next);
    containers += depth;
    if (lines > MAX_LINES || marks > MAX_MARKS || containers > MAX_CONTAINERS || depth > MAX_DEPTH) {
      return { end: line, limited: true };
    }
    line = next;
  }
  return { end: text.length, limited: false };
}

function marksIn(text: string, start: number, end: number): number {
  let marks = 0;
  for (let i = start; i < end; i++) {
    const char = text[i];
    if (char === "*" || char === "_" || char === "[" || char === "<" || char === "~") marks += 1;
  }
  return marks;
}

/** How many containers a line begins or continues, as far as its own characters say. */
function depthOf(text: string, line: number): number {
  const container = /[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))/y;
  container.lastIndex = line;
  let depth = 0;
  while (depth <= MAX_DEPTH && container.test(text)) depth += 1;
  return depth;
}
