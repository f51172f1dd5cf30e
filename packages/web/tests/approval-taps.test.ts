/** Tests that a press counts only if the card was where it is for a moment, and that a held key presses once. */
import { describe, expect, it } from "vitest";
import { isRepeatedPress, SETTLE_MS, TapGuard } from "../src/approvals/tap.ts";

const place = (inWindow: number, inContent = inWindow) => ({ inWindow, inContent });

describe("R36: a press on a card", () => {
  it("does not count right after the card has appeared", () => {
    const guard = new TapGuard(place(100), 0);
    expect([guard.accepts(0), guard.accepts(SETTLE_MS - 1), guard.accepts(SETTLE_MS)]).toEqual([false, false, true]);
  });

  it("does not count right after something above has moved the card", () => {
    const guard = new TapGuard(place(100), 0);
    guard.handlePlace(place(180), 1000);
    expect([guard.accepts(1000), guard.accepts(1000 + SETTLE_MS)]).toEqual([false, true]);
  });

  it("does not count while the card moves slowly", () => {
    const guard = new TapGuard(place(0), 0);
    for (let step = 1; step <= 20; step++) guard.handlePlace(place(4 * step), 1000 + 100 * step);
    expect(guard.accepts(3000)).toBe(false);
  });

  it("counts right after the user has scrolled", () => {
    const guard = new TapGuard(place(900), 0);
    guard.handlePlace(place(100, 900), 1000);
    expect(guard.accepts(1000)).toBe(true);
  });

  it("counts while text grows above and the view follows its end, so that the card stays where it is", () => {
    const guard = new TapGuard(place(500, 2000), 0);
    for (let step = 1; step <= 20; step++) guard.handlePlace(place(500, 2000 + 40 * step), 100 * step);
    expect(guard.accepts(2000)).toBe(true);
    // Also after the user had scrolled before.
    guard.handlePlace(place(300, 2800), 2100);
    guard.handlePlace(place(300, 2900), 2200);
    expect(guard.accepts(2200)).toBe(true);
  });
});

describe("R36: a held key", () => {
  const repeated = (key: string, control: string, repeat = true) => isRepeatedPress({ key, control, repeat });

  it("presses a button once, so that it never confirms what it has chosen", () => {
    expect([repeated("Enter", "BUTTON", false), repeated(" ", "BUTTON", false)]).toEqual([false, false]);
    expect([repeated("Enter", "BUTTON"), repeated(" ", "BUTTON")]).toEqual([true, true]);
  });

  it("sends no form", () => {
    expect([repeated("Enter", "INPUT", false), repeated("Enter", "INPUT")]).toEqual([false, true]);
  });

  it("still types and moves", () => {
    const typed = [repeated("Enter", "TEXTAREA"), repeated(" ", "TEXTAREA"), repeated(" ", "INPUT")];
    expect([...typed, repeated("Tab", "BUTTON"), repeated("a", "INPUT")]).toEqual([false, false, false, false, false]);
  });
});
