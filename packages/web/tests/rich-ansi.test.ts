/** The output of programs: which colours it keeps, and that nothing else of a terminal is left. */
import { describe, expect, test } from "vitest";
import { firstLines, type Look, MAX_TEXT, readAnsi, styleOf } from "../src/rich/ansi.ts";

const textOf = (output: string) =>
  readAnsi(output)
    .spans.map(({ text }) => text)
    .join("");
/** The spans as `[text, look]`. */
const spansOf = (output: string) => readAnsi(output).spans.map(({ text, look }): [string, Look] => [text, look]);
const lookOf = (parameters: string) => readAnsi(`\x1b[${parameters}mx`).spans[0]?.look;

describe("colours", () => {
  test("text is split where the look changes", () => {
    expect(spansOf("a\x1b[1;31mb\x1b[0mc\nd\x1b[4me")).toEqual([
      ["a", {}],
      ["b", { bold: true, color: 1 }],
      ["c\nd", {}],
      ["e", { underline: true }],
    ]);
  });

  test.each<[string, Look]>([
    ["", {}],
    ["0", {}],
    ["37", { color: 7 }],
    ["97;100", { color: 15, background: 8 }],
    ["38;5;9", { color: 9 }],
    ["38;5;16", { color: "rgb(0 0 0)" }],
    ["38;5;231;1", { color: "rgb(255 255 255)", bold: true }],
    ["48;5;244", { background: "rgb(128 128 128)" }],
    ["38;2;1;22;255;3", { color: "rgb(1 22 255)", italic: true }],
    ["38:2::1:22:255", { color: "rgb(1 22 255)" }],
    ["38;5", { color: 0 }],
    ["38;2", { color: "rgb(0 0 0)" }],
    ["38:5:1;2", { color: 1, dim: true }],
    ["4:3;58;5;1", { underline: true }],
    ["1;2;3;4;7;22;23;24;27", {}],
    ["31;41;39;49", {}],
  ])("SGR %s", (parameters, look) => {
    expect(lookOf(parameters)).toEqual(look);
  });

  test.each(["38", "38;5;256", "38;2;1;2;256", "38;5;99999999999", "999999999999", ";;;;", "5;8;9;53;99"])(
    "SGR %s changes nothing",
    (parameters) => {
      expect(lookOf(parameters)).toEqual({});
    },
  );

  test("become styles that can be read in both themes", () => {
    expect(styleOf({ bold: true, color: 3 })).toEqual({ classes: "bold", color: "var(--ansi-3)" });
    expect(styleOf({ color: "rgb(9 9 9)" })?.color).toBe("color-mix(in srgb, rgb(9 9 9) 50%, var(--text))");
    expect(styleOf({ inverse: true })).toEqual({ classes: "inverse" });
    expect(styleOf({ inverse: true, color: 1 })).toEqual({
      classes: "",
      background: "color-mix(in srgb, var(--ansi-1) 22%, transparent)",
    });
    expect(styleOf({ background: "rgb(250 250 250)" })).toMatchObject({ color: "black" });
    expect(styleOf({ background: "rgb(0 0 90)" })).toMatchObject({ color: "white" });
  });
});

describe("everything else", () => {
  test.each([
    ["\x1b[2J\x1b[1;1Ha\x1b[K\x1b[?25lb", "ab"],
    ["\x9b31ma\x9b0m", "a"],
    ["\x1b]0;title\x07a\x1b]8;;https://example.org\x1b\\b\x1b]8;;\x1b\\", "ab"],
    ["\x1bP+q544e\x1b\\a\x1b_x\x1b\\\x1b^y\x1b\\\x1bXz\x1b\\b", "ab"],
    ["\x1b(B\x1b)0\x1b7a\x1b8\x1b=\x1b>\x1bcb", "ab"],
    ["bell\x07", "bell"],
    ["a\x1b[31", "a"],
    ["a\x1b", "a"],
    ["a\x1b[ ", "a"],
    ["one\r\ntwo\r\n", "one\ntwo"],
    ["  5 %\r 50 %\r100 %\ndone", "100 %\ndone"],
    ["kept\r\r\nnext", "kept\nnext"],
    ["kept\r", "kept"],
    ["ab\b\bc", "c"],
    ["a👍\bb", "ab"],
    ["\b\ba", "a"],
    ["\n\na\n\n", "\n\na\n"],
    ["", ""],
  ])("%j", (output, text) => {
    expect(textOf(output)).toBe(text);
  });

  test("colours of overwritten text stay on", () => {
    expect(spansOf("\x1b[31mred\rnew")).toEqual([["new", { color: 1 }]]);
  });

  test("a sequence that never ends hides nothing", () => {
    expect(textOf("\x1b]0;title\nsecond line")).toBe("\x1b]0;title\nsecond line");
    expect(textOf("\x1b[12\nnext")).toBe("\x1b[12\nnext");
  });
});

describe("limits", () => {
  const most = (unit: string) => unit.repeat(Math.floor(MAX_TEXT / unit.length));

  test.each([
    ["escapes", most("\x1b")],
    ["control sequences that do not end", most("\x1b[")],
    ["one that goes on and on", `\x1b[${most("1;")}`],
    ["one with many intermediates", `\x1b[${"0".repeat(200_000)}${" ".repeat(200_000)}é`],
    ["strings that do not end", most("\x1b]0;")],
    ["one long string", `\x1b]${most("x")}`],
    ["carriage returns", most("\r")],
    ["overwritten lines", most("abc\r")],
    ["backspaces", most("a\b")],
    ["backspaces after much text", "a".repeat(100_000) + "\b".repeat(100_000)],
    ["colour changes", most("\x1b[31ma\x1b[0mb")],
    ["giant parameters", most(`\x1b[${"9".repeat(5000)}m`)],
    ["many parameters", most(`\x1b[${"1;".repeat(5000)}m`)],
    ["lines", most("\n")],
  ])("%s", (_, output) => {
    expect(readAnsi(output).spans.length).toBeLessThan(6000);
  });

  test("what is too long is left out, and counted", () => {
    expect(readAnsi("x".repeat(MAX_TEXT + 7))).toMatchObject({ omitted: 7, lines: 1 });
  });

  test("long output is folded to its first lines", () => {
    const lines = (count: number) => Array.from({ length: count }, (_, i) => `\x1b[3${i % 8}m${i}`).join("\n");
    expect(readAnsi(lines(100)).lines).toBe(100);
    const { spans, folded } = firstLines(readAnsi(lines(100)).spans);
    expect(folded).toBe(true);
    expect(spans.map(({ text }) => text).join("")).toBe(Array.from({ length: 24 }, (_, i) => i).join("\n"));
    expect(firstLines(readAnsi(lines(29)).spans)).toMatchObject({ folded: false });
    expect(firstLines(readAnsi("x".repeat(100_000)).spans)).toMatchObject({ folded: true });
    expect(firstLines(readAnsi("x".repeat(6500)).spans)).toMatchObject({ folded: false });
  });
});
