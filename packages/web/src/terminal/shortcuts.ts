/**
 * Shortcuts that a shell does not miss: Ctrl and Shift together, which a terminal cannot tell from Ctrl alone, so that no program
 * is told about them; on a Mac, Command.
 */

/** What a shortcut does. */
export type Act = "search" | "bigger" | "smaller" | "size" | "board" | "leave" | "help";

/** A shortcut. */
export interface Shortcut {
  readonly act: Act;
  /** The physical key, so that it is in the same place on every layout. */
  readonly code: string;
  /** What stands on that key on most keyboards. */
  readonly key: string;
  readonly does: string;
}

/** All of them. */
export const SHORTCUTS: readonly Shortcut[] = [
  { act: "search", code: "KeyF", key: "F", does: "Search the output" },
  { act: "bigger", code: "Period", key: ".", does: "Larger font" },
  { act: "smaller", code: "Comma", key: ",", does: "Smaller font" },
  { act: "size", code: "KeyS", key: "S", does: "Use my size" },
  { act: "board", code: "KeyB", key: "B", does: "Back to the board" },
  { act: "leave", code: "KeyE", key: "E", does: "Leave the terminal: the focus goes to the buttons above it" },
  { act: "help", code: "Slash", key: "/", does: "Show these keys" },
];

/** As much of a keyboard event as is looked at. */
export interface Pressed {
  readonly type: string;
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
}

/** What a pressed key asks for, if it is a shortcut. */
export function shortcutOf(event: Pressed, mac: boolean): Act | undefined {
  if (event.type !== "keydown" || event.altKey) return undefined;
  const held = event.ctrlKey && event.shiftKey && !event.metaKey;
  const macSearch = mac && event.metaKey && !event.ctrlKey && !event.shiftKey && event.code === "KeyF";
  if (macSearch) return "search";
  return held ? SHORTCUTS.find(({ code }) => code === event.code)?.act : undefined;
}

/** Copy and paste are the browser's own: the terminal must not see their keys. */
export function isCopyOrPaste(event: Pressed): "copy" | "paste" | undefined {
  if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return undefined;
  return event.code === "KeyC" ? "copy" : event.code === "KeyV" ? "paste" : undefined;
}

/** A shortcut in words. */
export function shown(shortcut: Shortcut, mac: boolean): string {
  if (mac && shortcut.act === "search") return "⌘ F";
  return `Ctrl Shift ${shortcut.key}`;
}
