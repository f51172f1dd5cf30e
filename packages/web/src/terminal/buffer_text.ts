/** The content of a terminal's buffer as plain text. */
import type { IBuffer } from "@xterm/xterm";

/** The text of the lines from `start`; wrapped lines are joined. Empty lines at the end are left out. */
export function bufferText(buffer: IBuffer, start = 0): string {
  let text = "";
  for (let row = start; row < buffer.length; row++) {
    const line = buffer.getLine(row);
    if (line)
      text +=
        (row > start && !line.isWrapped ? "\n" : "") + line.translateToString(!buffer.getLine(row + 1)?.isWrapped);
  }
  return text.trimEnd();
}

/** The text of a buffer, and the position in it of the first line that the reader sees. */
export interface ReadText {
  readonly text: string;
  readonly at: number;
}

/** The text of a buffer that a reader has scrolled to `buffer.viewportY`. */
export function readText(buffer: IBuffer): ReadText {
  const text = bufferText(buffer);
  // A reader at the bottom, where new output appears, reads the end.
  if (buffer.viewportY >= buffer.baseY) return { text, at: text.length };
  let first = buffer.viewportY;
  while (first > 0 && buffer.getLine(first)?.isWrapped) first--;
  return { text, at: Math.max(text.length - bufferText(buffer, first).length, 0) };
}
