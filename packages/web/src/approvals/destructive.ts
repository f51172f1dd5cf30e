/**
 * Commands whose damage cannot be undone. The list is short and looks at words, not at a parsed command line, so it misses much
 * and sometimes matches what is only quoted. Both are fine: a match adds a step, and nothing is ever allowed because of it.
 *
 * Each word is looked at a few times, however the command is made: it comes from an agent.
 */

/** Takes the words after the program, and says whether the program destroys something with them. */
type Rule = (words: readonly string[]) => boolean;

const always: Rule = () => true;
/** Whether one of the words is a group of short options with this letter. */
const hasLetter = (words: readonly string[], letter: RegExp) =>
  words.some((word) => /^-[a-z]+$/i.test(word) && letter.test(word));

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ["rm", (words) => words.includes("--recursive") || hasLetter(words, /r/i)],
  ["find", (words) => words.includes("-delete")],
  ["git", destroysCommits],
  ["dd", (words) => words.some((word) => word.startsWith("of="))],
  ["mkfs", always],
  ["shred", always],
  ["wipefs", always],
  ["sudo", always],
  ["doas", always],
]);

/** Writes to a disk, and statements of SQL. */
const TEXTS: readonly RegExp[] = [
  />\s?\/dev\/(?:sd|hd|vd|nvme|disk|mmcblk)/,
  /\b(?:drop\s{1,9}(?:table|database|schema)|truncate\s{1,9}table)\b/i,
];

/** Whether a command is on the list. */
export function isDestructive(command: string): boolean {
  const lines = command.replace(/\\\r?\n/g, " ");
  const commands = lines.split(/[|;&\n()`]/).map(wordsOf);
  return TEXTS.some((text) => text.test(lines)) || commands.some(destroys) || lines.split("\n").some(runsDownload);
}

/** The words of a command, without quotes. */
function wordsOf(command: string): string[] {
  return command.split(/[\s"'{}$]+/).filter(Boolean);
}

/** Any word may be the program: `env X=1 rm`, `sh -c 'rm`. Each rule is used once, for the first word that it is for. */
function destroys(words: readonly string[]): boolean {
  const seen = new Set<string>();
  return words.some((word, at) => {
    const program = word.slice(word.lastIndexOf("/") + 1).replace(/^mkfs\..*/, "mkfs");
    const rule = seen.has(program) ? undefined : RULES.get(program);
    seen.add(program);
    return rule?.(words.slice(at + 1)) ?? false;
  });
}

function destroysCommits(words: readonly string[]): boolean {
  const forces = (word: string) => /^(?:--force|--mirror|--delete|\+.)/.test(word);
  if (words.includes("push")) return words.some(forces) || hasLetter(words, /f/);
  if (words.includes("reset")) return words.includes("--hard");
  return words.includes("clean") && (words.includes("--force") || hasLetter(words, /f/));
}

/** Whether a line gives what it downloads to a shell. */
function runsDownload(line: string): boolean {
  const download = line.search(/\b(?:curl|wget)\b/);
  if (download < 0) return false;
  const receivers = line.slice(download).split("|").slice(1).map(wordsOf);
  return receivers.some(([program = ""]) => /(?:^|\/)(?:ba|z|da|k|fi)?sh$/.test(program));
}
