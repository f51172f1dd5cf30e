/** Tests that each palette is complete, and that its text can be read. */
import { expect, test } from "vitest";
import { PALETTES, paletteTheme } from "../src/terminal/palettes.ts";

const FIELDS = Object.keys(PALETTES.bowline.dark).sort();

/** The contrast of two colours, as WCAG defines it. */
function contrast(one: string, other: string): number {
  const light = (colour: string) => {
    const [red, green, blue] = [1, 3, 5]
      .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const [more, less] = [light(one), light(other)].sort((a, b) => b - a);
  return (more! + 0.05) / (less! + 0.05);
}

test.each(Object.entries(PALETTES))("R54: the palette %s has all colours in both variants", (name, { dark, light }) => {
  for (const theme of [dark, light]) {
    expect(Object.keys(theme).sort()).toEqual(FIELDS);
    for (const colour of Object.values(theme)) expect(colour).toMatch(/^#[\da-f]{6}$/);
    // xterm.js raises the contrast of text to 4.5; it starts near enough for the colours to stay recognizable.
    expect(contrast(theme.foreground!, theme.background!)).toBeGreaterThan(4);
  }
  const luminance = (theme: typeof dark) => contrast(theme.background!, "#000000");
  expect(luminance(dark)).toBeLessThan(luminance(light));
  expect(paletteTheme(name, true)).toBe(dark);
});

test("an unknown palette is the default one", () => {
  expect(paletteTheme("constructor", false)).toBe(PALETTES.bowline.light);
});
