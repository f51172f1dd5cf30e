/** Completion of slash commands and of files: where it begins, what it offers, and what is inserted. */
import type { FileEntry, SlashCommand } from "@bowline/client";

/** The word at the caret that can be completed. */
export interface Trigger {
  readonly kind: "command" | "file";
  /** Where the word begins, with its `/` or `@`. */
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  /** What is typed of it up to the caret, without the `/` or `@`. */
  readonly query: string;
}

/** Something to choose. */
export interface Suggestion {
  /** Unique in its list. */
  readonly key: string;
  /** What is shown, and inserted in place of the word. */
  readonly label: string;
  readonly description: string;
  /** What may follow, in words. */
  readonly hint: string;
  /** Whether more can be chosen below it. */
  readonly folder: boolean;
}

/** Commands that are shown. */
const MAX_COMMANDS = 50;
/** The longest query that is searched for. */
const MAX_QUERY = 200;

/** The word at the caret that can be completed, if there is one. */
export function triggerAt(text: string, caret: number): Trigger | undefined {
  const before = text.slice(0, caret);
  const after = text.slice(caret);
  const endOf = (rest: RegExp) => caret + (rest.exec(after)?.[0].length ?? 0);
  const command = /^\/(\S*)$/.exec(before)?.[1];
  if (command !== undefined) return { kind: "command", start: 0, end: endOf(/^\S*/), query: command };
  // The word is looked for in the end only: the text may be long.
  const file = /(?:^|[\s([{"'`])@([^\s@]*)$/.exec(before.slice(-MAX_QUERY - 2))?.[1];
  if (file === undefined || file.length > MAX_QUERY) return undefined;
  // Punctuation after the word is not part of it.
  return { kind: "file", start: caret - file.length - 1, end: endOf(/^[^\s()[\]{}"'`,;:]*/), query: file };
}

/** The commands whose name contains the query, those that begin with it first. */
export function commandSuggestions(commands: readonly SlashCommand[], query: string): Suggestion[] {
  const wanted = query.toLowerCase();
  const found = commands.filter(({ name }) => name.toLowerCase().includes(wanted));
  const begins = ({ name }: SlashCommand) => name.toLowerCase().startsWith(wanted);
  const sorted = [...found.filter(begins), ...found.filter((command) => !begins(command))];
  const names = new Set<string>();
  const unique = sorted.filter(({ name }) => isPlain(name) && !names.has(name) && names.add(name));
  return unique.slice(0, MAX_COMMANDS).map(commandSuggestion);
}

function commandSuggestion({ name, description = "", hint = "" }: SlashCommand): Suggestion {
  return { key: name, label: `/${name}`, description, hint, folder: false };
}

export function fileSuggestions(files: readonly FileEntry[]): Suggestion[] {
  return files
    .filter(({ path }) => isPlain(path))
    .map(({ path, kind }) => {
      const folder = kind === "folder";
      return { key: path, label: `@${path}${folder ? "/" : ""}`, description: "", hint: "", folder };
    });
}

/** Whether a name can be inserted: a line break, a control or a bidi character in it would change the text around it. */
function isPlain(name: string): boolean {
  return name !== "" && !/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(name);
}

/** Replaces a part of a text. */
export interface Insertion {
  readonly start: number;
  readonly end: number;
  readonly insert: string;
}

/** What choosing a suggestion changes. A space follows, unless there is one, or a folder whose files may be chosen next. */
export function insertionOf(text: string, { start, end }: Trigger, { label, folder }: Suggestion): Insertion {
  if (folder) return { start, end, insert: label };
  const space = text[end] === " ";
  return { start, end: space ? end + 1 : end, insert: `${label} ` };
}

/** Whether the word is complete as it is, so that Enter may send it. */
export function isComplete(text: string, { start, end }: Trigger, { label, folder }: Suggestion): boolean {
  return !folder && text.slice(start, end) === label;
}
