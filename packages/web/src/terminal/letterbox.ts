/** How a terminal fits into its place: with its own size, or with somebody else's. */
import type { Size } from "@bowline/client";

/** Width and height in CSS pixels. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
}

/** Below this font size nobody reads anything: the terminal is then larger than its place, and is scrolled. */
export const SMALLEST_FONT = 7;
/** Font sizes are multiples of this. */
const STEP = 0.5;

/** How many columns and rows of this cell fit. */
export function sizeFor(place: Pixels, cell: Pixels): Size {
  const count = (room: number, one: number, least: number, most: number) =>
    Math.min(Math.max(one > 0 ? Math.floor(room / one + 1e-3) : least, least), most);
  return { cols: count(place.width, cell.width, 2, 1000), rows: count(place.height, cell.height, 1, 500) };
}

/**
 * The font size at which a terminal of this size fits its place, at most the wanted one. `cell` was measured at `font`; glyphs
 * grow in steps, so the result is an estimate that is checked by measuring again.
 */
export function fontFor(place: Pixels, size: Size, cell: Pixels, font: number, wanted: number): number {
  if (cell.width <= 0 || cell.height <= 0) return wanted;
  const scale = Math.min(place.width / (size.cols * cell.width), place.height / (size.rows * cell.height));
  const fitting = Math.floor((font * scale) / STEP) * STEP;
  return Math.min(Math.max(fitting, SMALLEST_FONT), Math.max(wanted, SMALLEST_FONT));
}

/** The next smaller font size to try when an estimate was too large. */
export function smaller(font: number): number {
  return Math.max(font - STEP, SMALLEST_FONT);
}

/** Whether a terminal of this size and cell is within its place. */
export function fits(place: Pixels, size: Size, cell: Pixels): boolean {
  return size.cols * cell.width <= place.width + 0.5 && size.rows * cell.height <= place.height + 0.5;
}
