/** Tests the estimate of the size of a new terminal. */
import { describe, expect, it } from "vitest";
import { terminalSize, type View, withoutKeyboard } from "../src/session/size.ts";

/** A laptop's window, and its font at 14 pixels. */
const LAPTOP: View = { window: { width: 1280, height: 800 }, narrow: false, keyRow: false, ratio: 1, gpu: false };
const GLYPH = { width: 8.43, height: 16.3 };

describe("R54: the size of a new terminal", () => {
  it("is what fits between the header and the status line", () => {
    // 1260 pixels in cells of 674 / 80, and 708 in rows of 17.
    expect(terminalSize(LAPTOP, GLYPH)).toEqual({ cols: 149, rows: 41 });
  });

  it("has room for more columns with a GPU, whose cells are whole device pixels wide", () => {
    expect(terminalSize({ ...LAPTOP, gpu: true }, GLYPH).cols).toBe(157);
    expect(terminalSize({ ...LAPTOP, gpu: true, ratio: 2 }, GLYPH).cols).toBe(157);
    expect(terminalSize({ ...LAPTOP, gpu: true, ratio: 3 }, GLYPH).cols).toBe(151);
  });

  it("leaves room for the key row of a phone", () => {
    const phone: View = { window: { width: 390, height: 844 }, narrow: true, keyRow: true, ratio: 2, gpu: false };
    const glyph = { width: 7.22, height: 14 };
    expect(terminalSize(phone, glyph)).toEqual({ cols: 51, rows: 50 });
    expect(terminalSize({ ...phone, keyRow: false }, glyph).rows).toBe(54);
  });

  it("is a size that a terminal can have, however small or large the window is", () => {
    const tiny = { ...LAPTOP, window: { width: 10, height: 10 } };
    expect(terminalSize(tiny, GLYPH)).toEqual({ cols: 2, rows: 1 });
    const huge = { ...LAPTOP, window: { width: 1e6, height: 1e6 } };
    expect(terminalSize(huge, GLYPH)).toEqual({ cols: 1000, rows: 500 });
  });

  it("does not count an on-screen keyboard, which made the window lower", () => {
    const before = { width: 390, height: 844 };
    expect(withoutKeyboard(before, { width: 390, height: 500 }, true)).toEqual(before);
    // The phone was turned, or a desktop's window was made smaller.
    const turned = { width: 844, height: 390 };
    expect(withoutKeyboard(before, turned, true)).toEqual(turned);
    const lower = { width: 390, height: 500 };
    expect(withoutKeyboard(before, lower, false)).toEqual(lower);
  });
});
