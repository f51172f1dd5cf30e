/** Output that is no longer in a terminal, read from the log of its session, newest first. */
import { ApiError, type LogPart } from "@bowline/client";
import { Terminal } from "@xterm/xterm";
import { bufferText } from "./buffer_text.ts";
import { mute } from "./mute.ts";
import { sessionWidths } from "./widths.ts";

/** Bytes of the log that are read at once. */
export const CHUNK = 512 * 1024;
/** Lines of a chunk that are shown: more than a chunk has, unless most of them are empty. */
const MAX_LINES = 100_000;
const NEWLINE = 0x0a;

/** A range of the log. */
export interface Chunk {
  /** The offset of its first byte. */
  readonly from: number;
  readonly bytes: Uint8Array;
  /** Whether nothing before it is kept or wanted. */
  readonly oldest: boolean;
}

/** Reads a range of the log, as `Api.log` does. */
export type ReadLog = (range: { from?: number; to?: number }) => Promise<LogPart>;

/**
 * Reads the end of the range from `from` to `to`, beginning at the start of a line. Returns undefined if none of it is
 * kept.
 */
export async function readBefore(to: number, from: number, read: ReadLog): Promise<Chunk | undefined> {
  const start = Math.max(to - CHUNK, from);
  const part = (await orTrimmed(() => read({ from: start, to }))) ?? (await orTrimmed(() => read({ to })));
  if (!part) return undefined;
  if (part.from > start || start === from) return { ...part, oldest: true };
  // The rest of the first line belongs to the chunk before.
  const cut = part.bytes.indexOf(NEWLINE) + 1;
  return { from: part.from + cut, bytes: part.bytes.subarray(cut), oldest: false };
}

/** Undefined if the range is no longer kept, or only a part of it. */
async function orTrimmed(read: () => Promise<LogPart>): Promise<LogPart | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ApiError && error.status === 416) return undefined;
    throw error;
  }
}

/** The text that these bytes leave in a terminal of this width, with its scrollback. */
export async function logText(bytes: Uint8Array, cols: number): Promise<string> {
  const term = new Terminal({
    allowProposedApi: true,
    cols,
    rows: 50,
    scrollback: MAX_LINES,
    scrollOnEraseInDisplay: true,
  });
  const hooks = mute(term);
  term.unicode.register(sessionWidths);
  term.unicode.activeVersion = sessionWidths.version;
  try {
    await new Promise<void>((done) => term.write(bytes, done));
    return bufferText(term.buffer.normal);
  } finally {
    hooks.dispose();
    term.dispose();
  }
}

/** `text` up to where `newer`, the beginning of the text that follows it, begins; undefined if that is not in it. */
export function textBefore(text: string, newer: string): string | undefined {
  if (!newer) return undefined;
  const at = `\n${text}`.lastIndexOf(`\n${newer}`);
  return at < 0 ? undefined : text.slice(0, Math.max(at - 1, 0));
}
