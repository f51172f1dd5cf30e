/**
 * Character widths, from the session's own table: Unicode versions disagree, and the page must agree with the
 * session.
 */
import type { IUnicodeVersionProvider } from "@xterm/xterm";
import runs from "./widths.json";

const WIDTHS = new Uint8Array(0x110000).fill(1);
for (const [from, to, width] of runs as [number, number, number][]) WIDTHS.fill(width, from, to + 1);

/** The session's width table as a Unicode version for xterm.js. */
export const sessionWidths: IUnicodeVersionProvider = {
  version: "bowline",
  wcwidth: (code) => WIDTHS[code] as 0 | 1 | 2,
  // A zero-width character joins the preceding one. The result packs: joins (bit 0), width (bits 1 and 2).
  charProperties(code, preceding) {
    const before = (preceding >> 1) & 3;
    const own = WIDTHS[code] ?? 1;
    const joins = own === 0 && before > 0;
    return ((joins ? before : own) << 1) | (joins ? 1 : 0);
  },
};
