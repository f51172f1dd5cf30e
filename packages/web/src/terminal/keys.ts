/** The key row: what each key sends, and modifiers that stay down for the next one. */

/** A modifier of the key row: off, down for the next key, or down until it is tapped again. */
export type Sticky = "off" | "once" | "locked";

/** The modifiers. */
export interface Modifiers {
  readonly ctrl: Sticky;
  readonly alt: Sticky;
}

/** A key of the row. */
export interface RowKey {
  /** What stands on it. */
  readonly label: string;
  /** What a screen reader calls it. */
  readonly name: string;
  readonly sends: Named | { readonly text: string };
  /** Holding it repeats it. */
  readonly repeats?: boolean;
}

/** Keys whose bytes depend on the terminal's modes or on modifiers. */
export type Named =
  | "Escape"
  | "Tab"
  | "BackTab"
  | "Enter"
  | "Backspace"
  | "Delete"
  | "Insert"
  | "Up"
  | "Down"
  | "Right"
  | "Left"
  | "Home"
  | "End"
  | "PageUp"
  | "PageDown"
  | `F${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12}`;

const text = (label: string, name: string): RowKey => ({ label, name, sends: { text: label } });
const control = (letter: string, name: string): RowKey => ({
  label: `^${letter}`,
  name,
  sends: { text: String.fromCharCode(letter.charCodeAt(0) & 0x1f) },
});

/** Left of the modifiers. */
export const FIRST_KEYS: readonly RowKey[] = [
  { label: "Esc", name: "Escape", sends: "Escape" },
  { label: "Tab", name: "Tab", sends: "Tab" },
];

/** Right of the modifiers. */
export const ARROW_KEYS: readonly RowKey[] = [
  { label: "←", name: "Left", sends: "Left", repeats: true },
  { label: "↓", name: "Down", sends: "Down", repeats: true },
  { label: "↑", name: "Up", sends: "Up", repeats: true },
  { label: "→", name: "Right", sends: "Right", repeats: true },
];

/** A swipe away. */
export const MORE_KEYS: readonly RowKey[] = [
  control("C", "Control C"),
  text("/", "Slash"),
  text("-", "Hyphen"),
  text("|", "Pipe"),
  text("~", "Tilde"),
  control("D", "Control D"),
  control("Z", "Control Z"),
  control("R", "Control R"),
  control("L", "Control L"),
  { label: "⇤", name: "Home", sends: "Home" },
  { label: "⇥", name: "End", sends: "End" },
  { label: "PgUp", name: "Page up", sends: "PageUp", repeats: true },
  { label: "PgDn", name: "Page down", sends: "PageDown", repeats: true },
  { label: "⇧Tab", name: "Shift Tab", sends: "BackTab" },
  { label: "⏎", name: "Enter", sends: "Enter" },
  { label: "⌫", name: "Backspace", sends: "Backspace", repeats: true },
  { label: "Del", name: "Delete", sends: "Delete", repeats: true },
  text("`", "Backtick"),
  text("\\", "Backslash"),
  text("{", "Opening brace"),
  text("}", "Closing brace"),
  text("[", "Opening bracket"),
  text("]", "Closing bracket"),
  text("$", "Dollar"),
  text("&", "Ampersand"),
  ...([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] as const).map((n): RowKey => ({
    label: `F${n}`,
    name: `F${n}`,
    sends: `F${n}`,
  })),
];

/** Keys of the form `CSI letter` (`SS3 letter` in application mode), and with modifiers `CSI 1;M letter`. */
const LETTERS: Partial<Record<Named, string>> = {
  Up: "A",
  Down: "B",
  Right: "C",
  Left: "D",
  End: "F",
  Home: "H",
  F1: "P",
  F2: "Q",
  F3: "R",
  F4: "S",
};
/** Keys of the form `CSI number ~`. */
const NUMBERS: Partial<Record<Named, number>> = {
  Insert: 2,
  Delete: 3,
  PageUp: 5,
  PageDown: 6,
  F5: 15,
  F6: 17,
  F7: 18,
  F8: 19,
  F9: 20,
  F10: 21,
  F11: 23,
  F12: 24,
};

/** The bytes of a key, as xterm sends them. */
export function bytesOf(key: Named, held: { ctrl: boolean; alt: boolean }, applicationCursor: boolean): string {
  const modifier = 1 + (held.alt ? 2 : 0) + (held.ctrl ? 4 : 0);
  const letter = LETTERS[key];
  if (letter) {
    if (modifier > 1) return `\x1b[1;${modifier}${letter}`;
    return (applicationCursor || key.startsWith("F") ? "\x1bO" : "\x1b[") + letter;
  }
  const number = NUMBERS[key];
  if (number) return modifier > 1 ? `\x1b[${number};${modifier}~` : `\x1b[${number}~`;
  const plain = { Escape: "\x1b", Tab: "\t", BackTab: "\x1b[Z", Enter: "\r", Backspace: "\x7f" }[key as string] ?? "";
  return held.alt ? `\x1b${plain}` : plain;
}

/** What typed text becomes under the modifiers: only a single character can be a control character. */
export function modified(typed: string, held: { ctrl: boolean; alt: boolean }): string {
  if ([...typed].length !== 1) return typed;
  const code = typed.charCodeAt(0);
  let out = typed;
  if (held.ctrl) {
    if (typed === " " || typed === "2") out = "\0";
    else if (typed === "?" || typed === "8") out = "\x7f";
    else if (code >= 0x40 && code <= 0x7e) out = String.fromCharCode(code & 0x1f);
    else if (typed === "/") out = "\x1f";
    else if (typed >= "3" && typed <= "7") out = String.fromCharCode(code - 0x33 + 0x1b);
  }
  return held.alt ? `\x1b${out}` : out;
}

/** A tap on a modifier: down for one key, then locked, then off. */
export function tapped(sticky: Sticky): Sticky {
  return sticky === "off" ? "once" : sticky === "once" ? "locked" : "off";
}

/** After a key: what was down for one key is up again. */
export function afterKey({ ctrl, alt }: Modifiers): Modifiers {
  const up = (sticky: Sticky): Sticky => (sticky === "once" ? "off" : sticky);
  return { ctrl: up(ctrl), alt: up(alt) };
}
