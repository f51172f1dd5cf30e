/** The keys of the key row, the bytes that they send, and its sticky modifiers. */

/** A modifier of the key row: off, on for the next key, or on until it is tapped again. */
export type ModifierState = "off" | "once" | "locked";

export interface Modifiers {
  readonly ctrl: ModifierState;
  readonly alt: ModifierState;
}

export interface RowKey {
  readonly label: string;
  /** The name for screen readers. */
  readonly name: string;
  readonly sends: KeyName | { readonly text: string };
  /** Whether it repeats while it is held. */
  readonly repeats?: boolean;
}

/** Keys whose bytes depend on the terminal's modes or on modifiers. */
export type KeyName =
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

/** Shown left of Control. */
export const FIRST_KEYS: readonly RowKey[] = [
  { label: "Esc", name: "Escape", sends: "Escape" },
  { label: "Tab", name: "Tab", sends: "Tab" },
];

/** Shown right of Control. With Paste, the narrowest phone shows all keys up to here. */
export const SECOND_KEYS: readonly RowKey[] = [
  control("C", "Control C"),
  { label: "←", name: "Left", sends: "Left", repeats: true },
  { label: "↓", name: "Down", sends: "Down", repeats: true },
  { label: "↑", name: "Up", sends: "Up", repeats: true },
  { label: "→", name: "Right", sends: "Right", repeats: true },
];

/** Reached by swiping the row. */
export const MORE_KEYS: readonly RowKey[] = [
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

/** Keys sent as `CSI letter` (`SS3 letter` in application mode), or with modifiers as `CSI 1;M letter`. */
const LETTERS: Partial<Record<KeyName, string>> = {
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
/** Keys sent as `CSI number ~`. */
const NUMBERS: Partial<Record<KeyName, number>> = {
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

/** The bytes that xterm sends for a key. */
export function keyBytes(key: KeyName, held: { ctrl: boolean; alt: boolean }, applicationCursor: boolean): string {
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

/** Applies the modifiers to typed text. Text of more than one character stays as it is. */
export function applyModifiers(typed: string, held: { ctrl: boolean; alt: boolean }): string {
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

/** The next state of a modifier that is tapped: on for one key, then locked, then off. */
export function nextModifierState(state: ModifierState): ModifierState {
  return state === "off" ? "once" : state === "once" ? "locked" : "off";
}

/** Turns off modifiers that were on for one key. */
export function releaseModifiers({ ctrl, alt }: Modifiers): Modifiers {
  const release = (state: ModifierState): ModifierState => (state === "once" ? "off" : state);
  return { ctrl: release(ctrl), alt: release(alt) };
}
