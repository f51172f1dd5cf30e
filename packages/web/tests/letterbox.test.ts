/** How a terminal fits into its place. */
import { describe, expect, it } from "vitest";
import { fits, fontFor, SMALLEST_FONT, sizeFor, smaller } from "../src/terminal/letterbox.ts";

const cell = { width: 8, height: 17 };

describe("R23: how a terminal fits its place", () => {
  it("as many whole cells as there is room for", () => {
    expect(sizeFor({ width: 807, height: 424 }, cell)).toEqual({ cols: 100, rows: 24 });
    expect(sizeFor({ width: 3, height: 3 }, cell)).toEqual({ cols: 2, rows: 1 });
    expect(sizeFor({ width: 1e6, height: 1e6 }, cell)).toEqual({ cols: 1000, rows: 500 });
    expect(sizeFor({ width: 100, height: 100 }, { width: 0, height: 0 })).toEqual({ cols: 2, rows: 1 });
  });

  it("a width that is a whole number of cells loses none to rounding", () => {
    expect(sizeFor({ width: 80 * 7.8, height: 170 }, { width: 7.8, height: 17 }).cols).toBe(80);
  });

  it("somebody else's size is drawn smaller, and never larger than wanted", () => {
    const place = { width: 480, height: 400 };
    expect(fontFor(place, { cols: 120, rows: 20 }, cell, 14, 14)).toBe(7);
    expect(fontFor(place, { cols: 80, rows: 20 }, cell, 14, 14)).toBe(10.5);
    expect(fontFor(place, { cols: 20, rows: 5 }, cell, 14, 14)).toBe(14);
  });

  it("but not too small to read", () => {
    expect(fontFor({ width: 300, height: 300 }, { cols: 200, rows: 50 }, cell, 14, 14)).toBe(SMALLEST_FONT);
    expect(smaller(SMALLEST_FONT)).toBe(SMALLEST_FONT);
    expect(smaller(9)).toBe(8.5);
  });

  it("and is known to fit or not", () => {
    expect(fits({ width: 640, height: 408 }, { cols: 80, rows: 24 }, cell)).toBe(true);
    expect(fits({ width: 639, height: 408 }, { cols: 80, rows: 24 }, cell)).toBe(false);
  });
});
