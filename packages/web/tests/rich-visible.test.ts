/** Characters that cannot be seen get a name, and code in unknown languages stays as it is. */
import { describe, expect, test } from "vitest";
import { highlight } from "../src/rich/highlight.ts";
import { coloredAs } from "../src/rich/languages.ts";
import { visible, visibleParts } from "../src/rich/visible.ts";

describe("visible", () => {
  test.each([
    ["ls -l\n\tcd", "ls -l\n\tcd"],
    ["\0\x07\b\r\x1b[31m\x7f", "␀␇␈␍␛[31m␡"],
    ["\x85\x9b", "⟨U+0085⟩⟨U+009B⟩"],
    ["a\u202Eb\u202C\u2066c\u2069\u200E\u200F\u061C", "a⟨U+202E⟩b⟨U+202C⟩⟨U+2066⟩c⟨U+2069⟩⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"],
    ["r\u200Bm\u200C\u200D\u2060\uFEFF\u00AD\u180E", "r⟨U+200B⟩m⟨U+200C⟩⟨U+200D⟩⟨U+2060⟩⟨U+FEFF⟩⟨U+00AD⟩⟨U+180E⟩"],
    ["a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"],
    ["\u115F\u3164\uFFA0\u034F\u17B4", "⟨U+115F⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+034F⟩⟨U+17B4⟩"],
    ["a\u{E0041}\u{E0101}\uFE0F", "a⟨U+E0041⟩⟨U+E0101⟩⟨U+FE0F⟩"],
    ["\uD800x\uDC00", "⟨U+D800⟩x⟨U+DC00⟩"],
    ["⚠️ 👩🏽‍💻 👨‍👩‍👧 é ß 日本 עברית", "⚠️ 👩🏽‍💻 👨‍👩‍👧 é ß 日本 עברית"],
    ["a\u200D👩", "a⟨U+200D⟩👩"],
    ["├──\u00a0a", "├──\u00a0a"],
    ["", ""],
  ])("%j", (text, shown) => {
    expect(visible(text)).toBe(shown);
    const parts = visibleParts(text);
    expect(parts.map((part) => part.text).join("")).toBe(shown);
    expect(parts.some(({ mark }) => mark)).toBe(shown !== text);
  });

  test("many marks are not told apart", () => {
    const parts = visibleParts("a\0".repeat(100_000));
    expect(parts.length).toBeLessThan(5000);
    expect(parts.map(({ text }) => text).join("")).toBe("a␀".repeat(100_000));
  });
});

describe("coloured code", () => {
  test("keeps its text, and says what its parts are", () => {
    const code = 'const a = "x"; // \u202E\n<b>\n';
    const pieces = highlight(code, "ts") ?? [];
    expect(pieces.map(({ text }) => text).join("")).toBe(code);
    expect(pieces.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["keyword", "string", "comment", ""]));
  });

  test("every language that is listed has a grammar", () => {
    for (const name of ["TypeScript", "sh", "c++", "objective-c++", "php-template", "diff", "zsh", "toml"]) {
      const known = coloredAs("x", name);
      expect(known && highlight("x = 1", known), name).toBeDefined();
    }
  });

  test("is plain if its language is unknown, or it is large", () => {
    for (const name of [undefined, "", "text", "klingon", "__proto__", "constructor"]) {
      expect(coloredAs("x", name)).toBeUndefined();
    }
    expect(highlight("x", "klingon")).toBeUndefined();
    expect(coloredAs("x\n".repeat(30_000), "js")).toBeUndefined();
    expect(coloredAs("x".repeat(6000), "js")).toBeUndefined();
  });
});
