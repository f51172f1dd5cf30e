/**
 * The size of a terminal that fills a window, so that a session starts with the size that it is shown with.
 *
 * This is an estimate: the terminal's view measures again when it is opened. Where that differs, the session is resized once.
 */
import { clampSize, type Size } from "@bowline/client";

/** Width and height in CSS pixels. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
}

/** What surrounds the cells in the view of a terminal, in CSS pixels; the styles of its components say the same. */
const HEADER = 48;
const STATUS_LINE = 36;
const KEY_ROW = 52;
const SCROLL_BAR = 12;
/** The margins of the terminal: above, below and before it. */
const MARGINS = { wide: { width: 8, height: 8 }, narrow: { width: 4, height: 4 } };

/** The size at which the terminal's view measures a cell. The browser rounds the terminal's width and height. */
const MEASURED: Size = { cols: 80, rows: 24 };

/** A character, as the browser measures it: the advance width, and the height of the font. */
export interface Glyph {
  readonly width: number;
  readonly height: number;
}

/** How the view of a terminal is going to look. */
export interface View {
  /** Without the insets of the device, such as a notch. */
  readonly window: Pixels;
  readonly narrow: boolean;
  readonly keyRow: boolean;
  /** Device pixels in a CSS pixel. */
  readonly ratio: number;
  /** Whether a GPU draws the cells. */
  readonly gpu: boolean;
}

/** The size of a terminal in this view, with this glyph. */
export function terminalSize({ window, narrow, keyRow, ratio, gpu }: View, glyph: Glyph): Size {
  const margins = narrow ? MARGINS.narrow : MARGINS.wide;
  const width = window.width - margins.width - SCROLL_BAR;
  const height = window.height - margins.height - HEADER - STATUS_LINE - (keyRow ? KEY_ROW : 0);
  const cellWidth = Math.round(glyph.width * MEASURED.cols) / MEASURED.cols;
  const cellHeight = Math.round((Math.ceil(glyph.height * ratio) * MEASURED.rows) / ratio) / MEASURED.rows;
  const drawnWidth = gpu ? Math.floor(cellWidth * ratio) / ratio : cellWidth;
  return clampSize({ cols: Math.floor(width / drawnWidth + 1e-3), rows: Math.floor(height / cellHeight + 1e-3) });
}

/**
 * The window once the on-screen keyboard is closed, given what it was `before` the keyboard opened. Some browsers make the
 * window lower for the keyboard.
 */
export function withoutKeyboard(before: Pixels, now: Pixels, touch: boolean): Pixels {
  return touch && before.width === now.width ? { ...now, height: Math.max(before.height, now.height) } : now;
}
