/** Reads a fenced code block at the start of a piece of Markdown, however long it is, in linear time. */
import type { Code } from "mdast";

export interface Fence {
  readonly code: Code;
  /** Where the text after it starts; none while more text could still belong to it. */
  readonly end?: number;
}

const OPENING = /(`{3,}(?=[^`\r\n]*\n)|~{3,})([^\r\n]*)\n/y;

/** The code block whose opening line starts at `start`. Undefined if there is none, or it needs the whole parser. */
export function readFence(text: string, start: number): Fence | undefined {
  OPENING.lastIndex = start;
  const [line, marks, info] = OPENING.exec(text) ?? [];
  // The parser decodes escapes and entities, and knows lone carriage returns.
  if (line === undefined || marks === undefined || info === undefined || /[&\\\0]/.test(info)) return undefined;
  const from = start + line.length;
  const closing = new RegExp(`(?<=\\n) {0,3}${marks[0]}{${marks.length},}[ \\t]*(\\n|(?![^]))`, "g");
  closing.lastIndex = from;
  const close = closing.exec(text);
  const value = text.slice(from, close?.index).replace(/\n$/, "");
  if (value.includes("\r")) return undefined;
  const [, lang = null, meta = null] = /^[ \t]*([^ \t]+)[ \t]*(.*)$/.exec(info) ?? [];
  return {
    code: { type: "code", lang, meta: meta || null, value: value.replaceAll("\0", "\uFFFD") },
    ...(close?.[1] ? { end: close.index + close[0].length } : {}),
  };
}
