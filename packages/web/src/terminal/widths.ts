/** How wide a character is: by the session's own table, since two versions of Unicode do not agree. */
import type { IUnicodeVersionProvider } from "@xterm/xterm";
import runs from "./widths.json";

const WIDTHS = new Uint8Array(0x110000).fill(1);
for (const [from, to, width] of runs as [number, number, number][]) WIDTHS.fill(width, from, to + 1);

/** The session's table for xterm.js. */
export const sessionWidths: IUnicodeVersionProvider = {
  version: "bowline",
  wcwidth: (code) => WIDTHS[code] as 0 | 1 | 2,
  // A character without width joins the one before it. The number packs: joins (bit 0), width (bits 1 and 2).
  charProperties(code, preceding) {
    const before = (preceding >> 1) & 3;
    const own = WIDTHS[code] ?? 1;
    const joins = own === 0 && before > 0;
    return ((joins ? before : own) << 1) | (joins ? 1 : 0);
  },
};
