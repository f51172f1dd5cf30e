/** Diffs: all formats that agents send, and comparisons of whole files. */
import { describe, expect, test } from "vitest";
import { compareTexts, type FileDiff, firstHunks, parseDiff } from "../src/rich/diff.ts";

/** A diff as text: line numbers, a sign and the line. */
function written({ hunks }: FileDiff): string[] {
  return hunks.flatMap(({ heading, lines }) => [
    `@@ ${heading}`,
    ...lines.map((line) => {
      const numbers = [("before" in line && line.before) || "", ("after" in line && line.after) || ""];
      return `${numbers.join(" ")} ${{ same: "=", added: "+", removed: "-", note: "\\" }[line.kind]}${line.text}`;
    }),
  ]);
}

const HUNK = "@@ -3,3 +3,4 @@ fn main() {\n one\n-two\n+TWO\n+more\n three\n";
const HUNK_LINES = ["@@ fn main() {", "3 3 =one", "4  -two", " 4 +TWO", " 5 +more", "5 6 =three"];

describe("unified diffs", () => {
  test("a hunk alone", () => {
    const diff = parseDiff(HUNK);
    expect(written(diff)).toEqual(HUNK_LINES);
    expect(diff).toMatchObject({ added: 2, removed: 1 });
    expect(diff.path).toBeUndefined();
  });

  test.each([
    ["git", `diff --git a/src/a.rs b/src/a.rs\nindex 123..456 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n${HUNK}`],
    ["diff -u", `--- src/a.rs\t2026-01-01 00:00:00\n+++ src/a.rs\t2026-01-01 00:00:00\n${HUNK}`],
    ["svn", `Index: src/a.rs\n${"=".repeat(67)}\n--- src/a.rs\n+++ src/a.rs\n${HUNK}`],
  ])("%s", (_, text) => {
    const diff = parseDiff(text);
    expect(written(diff)).toEqual(HUNK_LINES);
    expect(diff.path).toBe("src/a.rs");
  });

  test("a file that is new, deleted or renamed", () => {
    const created = parseDiff(
      "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+one\n",
    );
    expect(written(created)).toEqual(["@@ ", "  \\new file mode 100644", "@@ ", " 1 +one"]);
    expect(created.path).toBe("x");
    const deleted = parseDiff("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n\\ No newline at end of file\n");
    expect(written(deleted)).toEqual(["@@ ", "1  -one", "  \\No newline at end of file"]);
    expect(deleted.path).toBe("x");
    const renamed = parseDiff(`diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n${HUNK}`);
    expect(renamed.path).toBe("y");
    expect(written(renamed).slice(0, 3)).toEqual(["@@ ", "  \\rename from x", "  \\rename to y"]);
  });

  test("a changed mode and a binary file are not hidden", () => {
    const text =
      "diff --git a/x b/x\nold mode 100644\nnew mode 100755\ndiff --git a/y b/y\nBinary files a/y and b/y differ\n";
    expect(written(parseDiff(text))).toEqual([
      "@@ x",
      "  \\old mode 100644",
      "  \\new mode 100755",
      "@@ y",
      "  \\Binary files a/y and b/y differ",
    ]);
  });

  test("several files", () => {
    const diff = parseDiff(`--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n${HUNK}`);
    expect(written(diff)).toEqual(["@@ x", "1  -a", " 1 +b", "@@ y · fn main() {", ...HUNK_LINES.slice(1)]);
    expect(diff.path).toBeUndefined();
  });

  test("the patches of Codex", () => {
    const text = "*** Begin Patch\n*** Update File: src/a.rs\n@@ fn main\n one\n-two\n+TWO\n*** End Patch\n";
    expect(written(parseDiff(text))).toEqual(["@@ fn main", "  =one", "  -two", "  +TWO"]);
    expect(parseDiff(text).path).toBe("src/a.rs");
    const files = "*** Add File: x\n+one\n*** Delete File: y\n*** Update File: z\n*** Move to: w\n@@\n-a\n";
    expect(written(parseDiff(`*** Begin Patch\n${files}`))).toEqual([
      "@@ x",
      "  \\*** Add File: x",
      "  +one",
      "@@ y",
      "  \\*** Delete File: y",
      "@@ z",
      "  \\*** Move to: w",
      "@@ z",
      "  -a",
    ]);
  });

  test("lines alone", () => {
    expect(written(parseDiff("-a\n+b\n c\nd"))).toEqual(["@@ ", "  -a", "  +b", "  =c", "  =d"]);
    expect(parseDiff("")).toMatchObject({ hunks: [], added: 0 });
  });

  test("lines that look like headers are lines, as long as the hunk is not complete", () => {
    const diff = parseDiff("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- an SQL comment\n+++ b/etc/passwd\n same\n");
    expect(written(diff)).toEqual(["@@ ", "1  --- an SQL comment", " 1 +++ b/etc/passwd", "2 2 =same"]);
    expect(diff.path).toBe("x");
  });

  test("wrong counts hide nothing", () => {
    const long = parseDiff("@@ -1,99 +1,99 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n");
    expect(written(long)).toEqual(["@@ ", "1  -a", " 1 +b", "@@ y", "1  -c", " 1 +d"]);
    const short = parseDiff("@@ -1 +1 @@\n-a\n+b\n+c\n d\n@@ -7 +8 @@\n-e\n");
    expect(written(short)).toEqual(["@@ ", "1  -a", " 1 +b", " 2 +c", "2 3 =d", "@@ ", "7  -e"]);
  });

  test("Windows line ends are kept", () => {
    expect(written(parseDiff("@@ -1 +1 @@\r\n-a\r\n+b\r\n"))).toEqual(["@@ \r", "1  -a\r", " 1 +b\r"]);
  });
});

describe("comparisons", () => {
  test("show what changed, with three lines around it", () => {
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i + 1}`);
    const changed = lines.with(9, "ten").toSpliced(30, 1);
    const diff = compareTexts(`${lines.join("\n")}\n`, `${changed.join("\n")}\n`);
    expect(diff).toMatchObject({ added: 1, removed: 2 });
    expect(diff.hunks).toHaveLength(2);
    expect(written(diff).slice(0, 6)).toEqual([
      "@@ ",
      "7 7 =line 7",
      "8 8 =line 8",
      "9 9 =line 9",
      "10  -line 10",
      " 10 +ten",
    ]);
  });

  test("a new file, a deleted file, an empty file, and no change", () => {
    expect(written(compareTexts(null, "a\nb\n"))).toEqual(["@@ ", " 1 +a", " 2 +b"]);
    expect(written(compareTexts("a\nb", null))).toEqual(["@@ ", "1  -a", "2  -b"]);
    expect(compareTexts(null, "")).toMatchObject({ note: "New, empty file." });
    expect(compareTexts("", null)).toMatchObject({ note: "Deleted, empty file." });
    expect(compareTexts("a", "a")).toMatchObject({ hunks: [], note: "Nothing changed." });
  });

  test("a missing line end is mentioned", () => {
    expect(written(compareTexts("a", "a\n"))).toEqual(["@@ ", "1  -a", "  \\No newline at end of file", " 1 +a"]);
  });

  test("files that differ everywhere are removed and added as a whole", () => {
    const text = (word: string) => Array.from({ length: 3000 }, (_, i) => `${word} ${i}\n`).join("");
    const diff = compareTexts(text("a"), text("b"));
    expect(diff).toMatchObject({ added: 3000, removed: 3000 });
    expect(diff.note).toMatch(/too much/);
  });

  test("long files and lines are cut, with a note", () => {
    expect(compareTexts(null, "a\n".repeat(9000))).toMatchObject({
      added: 5000,
      note: expect.stringMatching(/beginning/),
    });
    expect(parseDiff("+a\n".repeat(9000))).toMatchObject({ added: 5000, note: expect.stringMatching(/beginning/) });
    expect(parseDiff(`+${"x".repeat(9000)}`).hunks[0]?.lines[0]?.text).toMatch(/x… \(4000 more characters\)$/);
  });
});

test("long diffs are folded", () => {
  const { hunks } = parseDiff(`@@ -1,30 +1,30 @@\n${" a\n".repeat(30)}@@ -50,99 +50,99 @@\n${" b\n".repeat(99)}`);
  const first = firstHunks(hunks);
  expect(first).toMatchObject({ folded: true, total: 129 });
  expect(first.hunks.map(({ lines }) => lines.length)).toEqual([30, 10]);
  expect(firstHunks(hunks.slice(0, 1))).toMatchObject({ folded: false, hunks: hunks.slice(0, 1) });
});
