/** Fits a terminal into its container: with the container's own size, or scaled down with another viewer's. */
import type { Size } from "@bowline/client";

/** Width and height in CSS pixels. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
}

/**
 * The smallest readable font size. A terminal that does not fit at this size is larger than its container and
 * scrolls.
 */
export const SMALLEST_FONT = 7;
/** Font sizes are multiples of this. */
const STEP = 0.5;

/** How many columns and rows of this cell fit. */
export function sizeFor(container: Pixels, cell: Pixels): Size {
  const count = (space: number, unit: number, min: number, max: number) =>
    Math.min(Math.max(unit > 0 ? Math.floor(space / unit + 1e-3) : min, min), max);
  return { cols: count(container.width, cell.width, 2, 1000), rows: count(container.height, cell.height, 1, 500) };
}

/**
 * The font size at which a terminal of this size fits its container, at most `wanted`. `cell` was measured at
 * `font`. Glyphs grow in steps, so the result is an estimate: measure again to check it.
 */
export function fontFor(container: Pixels, size: Size, cell: Pixels, font: number, wanted: number): number {
  if (cell.width <= 0 || cell.height <= 0) return wanted;
  const scale = Math.min(container.width / (size.cols * cell.width), container.height / (size.rows * cell.height));
  const fitting = Math.floor((font * scale) / STEP) * STEP;
  return Math.min(Math.max(fitting, SMALLEST_FONT), Math.max(wanted, SMALLEST_FONT));
}

/** The next smaller font size, to try when an estimate was too large. */
export function smaller(font: number): number {
  return Math.max(font - STEP, SMALLEST_FONT);
}

/** Whether a terminal of this size and cell fits its container. */
export function fits(container: Pixels, size: Size, cell: Pixels): boolean {
  return size.cols * cell.width <= container.width + 0.5 && size.rows * cell.height <= container.height + 0.5;
}
