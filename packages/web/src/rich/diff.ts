/** Reads unified diffs, also incomplete ones, and compares texts. */
import { structuredPatch } from "diff";

export type DiffLine =
  | { readonly kind: "same"; readonly text: string; readonly before?: number; readonly after?: number }
  | { readonly kind: "removed"; readonly text: string; readonly before?: number }
  | { readonly kind: "added"; readonly text: string; readonly after?: number }
  /** Something about the lines above, such as that a line end is missing. */
  | { readonly kind: "note"; readonly text: string };

/** Lines that are next to each other in the files. */
export interface Hunk {
  /** What the hunk is about: the file if there are several, a function. */
  readonly heading: string;
  readonly lines: readonly DiffLine[];
}

export interface FileDiff {
  /** The file that the diff names, if it names one. */
  readonly path?: string;
  readonly hunks: readonly Hunk[];
  readonly added: number;
  readonly removed: number;
  /** What the user has to know to read it right. */
  readonly note?: string;
}

/** Longer texts are not compared line by line. */
const MAX_COMPARED = 512 * 1024;
/** The comparison gives up when more lines than this differ, or it takes longer (in ms). */
const MAX_EDITS = 2000;
const MAX_TIME = 150;
/** Characters and lines of a diff that are read. */
const MAX_DIFF = 1024 * 1024;
const MAX_LINES = 5_000;

/** A longer diff is folded to this many lines, if it is longer by more than a few. */
const FOLDED_LINES = 40;
const SPARE_LINES = 20;
/** Characters of a line that are kept. */
const MAX_LINE = 5000;

const CUT = "The diff is too long. Only its beginning is shown.";

/** Compares a file before and after; null if there was, or is, none. */
export function compareTexts(before: string | null, after: string | null): FileDiff {
  if (before === after) return { hunks: [], added: 0, removed: 0, note: "Nothing changed." };
  if (!before || !after) return wholeTexts(before ?? "", after ?? "", wholeNote(before, after));
  const small = before.length + after.length <= MAX_COMPARED;
  const options = { context: 3, maxEditLength: MAX_EDITS, timeout: MAX_TIME };
  const patch = small ? structuredPatch("", "", before, after, undefined, undefined, options) : undefined;
  if (!patch) return wholeTexts(before, after, "The files differ too much to compare them line by line.");
  const builder = new DiffBuilder();
  for (const { oldStart, newStart, lines } of patch.hunks) {
    builder.startHunk("", oldStart, newStart);
    for (const line of lines) builder.addLine(line);
  }
  return builder.build();
}

function wholeNote(before: string | null, after: string | null): string | undefined {
  if (before === null) return after === "" ? "New, empty file." : undefined;
  return after === null && before === "" ? "Deleted, empty file." : undefined;
}

/** All lines of a text removed, and all lines of another added. */
function wholeTexts(before: string, after: string, note: string | undefined): FileDiff {
  const [removed, added] = [linesOf(before), linesOf(after)];
  const builder = new DiffBuilder();
  builder.startHunk("", 1, 1);
  for (const line of removed.lines) builder.addLine(`-${line}`);
  for (const line of added.lines) builder.addLine(`+${line}`);
  return builder.build(removed.cut || added.cut ? CUT : note);
}

/** The lines of a text, up to the limits. */
function linesOf(text: string): { readonly lines: string[]; readonly cut: boolean } {
  const lines = text.slice(0, MAX_DIFF).split("\n", MAX_LINES + 1);
  const cut = text.length > MAX_DIFF || lines.length > MAX_LINES;
  return { lines: cut || lines.at(-1) === "" ? lines.slice(0, -1) : lines, cut };
}

const HUNK = /^@@+ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@+ ?(.*)$/s;
/** Lines that say nothing but that another file follows, in the formats of git, svn and Codex. */
const BETWEEN = /^(?:diff -|index [0-9a-f]+\.\.|Index: |={20,}$|\*\*\* (?:Begin Patch|End Patch|Update File: ))/;
/** What else happens to a file. */
const CHANGE =
  /^(?:(?:old|new|deleted file|new file) mode |(?:rename|copy) (?:from|to) |(?:dis)?similarity index |Binary files |GIT binary |\*\*\* )/;

/** Reads a diff. Lines that belong to no format count as unchanged, so that none is hidden. */
export function parseDiff(diff: string): FileDiff {
  const builder = new DiffBuilder();
  const { lines, cut } = linesOf(diff);
  lines.forEach((line, i) => {
    const [, before, removed = "1", after, added = "1", heading = ""] = HUNK.exec(line) ?? [];
    if (builder.isInside() && /^(?:[-+ \\]|$)/.test(line)) builder.addLine(line);
    else if (before) builder.startHunk(heading, Number(before), Number(after), Number(removed), Number(added));
    else if (line.startsWith("@@")) builder.startHunk(line.replace(/^@@ ?| ?@@$/g, ""));
    else if (line.startsWith("--- ") && lines[i + 1]?.startsWith("+++ ")) builder.startFile(pathOf(line));
    else if (line.startsWith("+++ ") && lines[i - 1]?.startsWith("--- ")) builder.renameFile(pathOf(line));
    else if (BETWEEN.test(line)) builder.startFile(nameIn(line));
    else if (CHANGE.test(line)) builder.addChange(line, nameIn(line));
    else builder.addLine(line);
  });
  return builder.build(cut ? CUT : undefined);
}

/** The path in a line such as `+++ b/src/main.rs`, which may end in a time. */
function pathOf(line: string): string {
  return line
    .slice(4)
    .replace(/\t.*$/s, "")
    .replace(/^[ab]\//, "");
}

/** The file that a line without its content names. */
function nameIn(line: string): string | undefined {
  const [, name] = /^(?:rename to |\*\*\* \w+ File: |Index: )(.+)$/s.exec(line) ?? [];
  if (name !== undefined || !line.startsWith("diff --git a/")) return name;
  // `diff --git a/NAME b/NAME`. If the names differ, where the first one ends is not certain.
  const names = line.slice("diff --git a/".length);
  const half = names.slice(0, (names.length - " b/".length) / 2);
  return names === `${half} b/${half}` ? half : undefined;
}

/** The first lines of a diff, and whether there are more. */
export function firstHunks(hunks: readonly Hunk[]): {
  readonly hunks: readonly Hunk[];
  readonly folded: boolean;
  readonly total: number;
} {
  const total = hunks.reduce((sum, { lines }) => sum + lines.length, 0);
  if (total <= FOLDED_LINES + SPARE_LINES) return { hunks, folded: false, total };
  const first: Hunk[] = [];
  let left = FOLDED_LINES;
  for (const { heading, lines } of hunks) {
    if (left <= 0) break;
    first.push({ heading, lines: lines.slice(0, left) });
    left -= lines.length;
  }
  return { hunks: first, folded: true, total };
}

class DiffBuilder {
  /** The file of the next hunk. */
  #file = "";
  #hunks: { readonly heading: string; file: string; readonly lines: DiffLine[] }[] = [];
  #added = 0;
  #removed = 0;
  /** The numbers of the next line in both files, if known. */
  #before: number | undefined;
  #after: number | undefined;
  /** Lines of both files that are still to come, as the hunk says. */
  #beforeLeft = 0;
  #afterLeft = 0;
  /** Whether a line belongs to the last hunk. */
  #open = false;

  startHunk(heading: string, before?: number, after?: number, removed = 0, added = 0) {
    this.#hunks.push({ heading, file: this.#file, lines: [] });
    this.#before = before;
    this.#after = after;
    this.#beforeLeft = removed;
    this.#afterLeft = added;
    this.#open = true;
  }

  /** Whether the hunk has fewer lines than it says. */
  isInside(): boolean {
    return this.#beforeLeft > 0 || this.#afterLeft > 0;
  }

  /** A file begins; what it is called may follow. */
  startFile(path: string | undefined) {
    this.#open = false;
    this.#beforeLeft = this.#afterLeft = 0;
    if (path !== undefined) this.#file = path;
  }

  /** The name of the file after the change. */
  renameFile(path: string) {
    if (path !== "/dev/null") this.#file = path;
  }

  /** Something that happens to a file besides its lines. */
  addChange(text: string, path: string | undefined) {
    // In the format of Codex, such a line is the first of a file.
    if (text.startsWith("***")) this.startFile(path);
    if (path !== undefined) this.#file = path;
    if (!this.#open) this.startHunk("");
    const hunk = this.#hunks.at(-1)!;
    // The name may come after other changes of the file.
    if (hunk.lines.every(({ kind }) => kind === "note")) hunk.file = this.#file;
    hunk.lines.push({ kind: "note", text });
  }

  addLine(line: string) {
    if (!this.#open) this.startHunk("");
    const lines = this.#hunks.at(-1)!.lines;
    const text = shortened(line.slice(1));
    const [before, after] = [this.#before, this.#after];
    if (line.startsWith("+")) {
      lines.push({ kind: "added", text, ...(after !== undefined && { after }) });
      this.#added += 1;
      this.#count(0, 1);
    } else if (line.startsWith("-")) {
      lines.push({ kind: "removed", text, ...(before !== undefined && { before }) });
      this.#removed += 1;
      this.#count(1, 0);
    } else if (line.startsWith("\\")) {
      lines.push({ kind: "note", text: text.trim() });
    } else {
      const same = line.startsWith(" ") ? text : shortened(line);
      lines.push({
        kind: "same",
        text: same,
        ...(before !== undefined && { before }),
        ...(after !== undefined && { after }),
      });
      this.#count(1, 1);
    }
  }

  #count(removed: number, added: number) {
    if (this.#before !== undefined) this.#before += removed;
    if (this.#after !== undefined) this.#after += added;
    this.#beforeLeft -= removed;
    this.#afterLeft -= added;
  }

  build(note?: string): FileDiff {
    const files = [...new Set(this.#hunks.map(({ file }) => file))];
    const several = files.length > 1;
    const hunks = this.#hunks.map(({ heading, file, lines }) => ({
      heading: [several ? file : "", heading].filter(Boolean).join(" · "),
      lines,
    }));
    return {
      ...(!several && files[0] && { path: files[0] }),
      hunks,
      added: this.#added,
      removed: this.#removed,
      ...(note !== undefined && { note }),
    };
  }
}

function shortened(line: string): string {
  return line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}… (${line.length - MAX_LINE} more characters)` : line;
}
