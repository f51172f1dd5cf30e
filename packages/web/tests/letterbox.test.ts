/** Tests how a terminal is fitted into its container. */
import { describe, expect, it } from "vitest";
import { fits, fontFor, SMALLEST_FONT, sizeFor, smaller } from "../src/terminal/letterbox.ts";

const cell = { width: 8, height: 17 };

describe("R23: fitting a terminal into its container", () => {
  it("uses as many whole cells as fit", () => {
    expect(sizeFor({ width: 807, height: 424 }, cell)).toEqual({ cols: 100, rows: 24 });
    expect(sizeFor({ width: 3, height: 3 }, cell)).toEqual({ cols: 2, rows: 1 });
    expect(sizeFor({ width: 1e6, height: 1e6 }, cell)).toEqual({ cols: 1000, rows: 500 });
    expect(sizeFor({ width: 100, height: 100 }, { width: 0, height: 0 })).toEqual({ cols: 2, rows: 1 });
  });

  it("loses no column to rounding when the width is a whole number of cells", () => {
    expect(sizeFor({ width: 80 * 7.8, height: 170 }, { width: 7.8, height: 17 }).cols).toBe(80);
  });

  it("scales another viewer's size down, but never up", () => {
    const container = { width: 480, height: 400 };
    expect(fontFor(container, { cols: 120, rows: 20 }, cell, 14, 14)).toBe(7);
    expect(fontFor(container, { cols: 80, rows: 20 }, cell, 14, 14)).toBe(10.5);
    expect(fontFor(container, { cols: 20, rows: 5 }, cell, 14, 14)).toBe(14);
  });

  it("never goes below the smallest readable font", () => {
    expect(fontFor({ width: 300, height: 300 }, { cols: 200, rows: 50 }, cell, 14, 14)).toBe(SMALLEST_FONT);
    expect(smaller(SMALLEST_FONT)).toBe(SMALLEST_FONT);
    expect(smaller(9)).toBe(8.5);
  });

  it("reports whether a terminal fits", () => {
    expect(fits({ width: 640, height: 408 }, { cols: 80, rows: 24 }, cell)).toBe(true);
    expect(fits({ width: 639, height: 408 }, { cols: 80, rows: 24 }, cell)).toBe(false);
  });
});
