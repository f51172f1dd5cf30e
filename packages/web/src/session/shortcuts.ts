/**
 * Keyboard shortcuts of the app. They use Ctrl+Shift, which a terminal cannot distinguish from Ctrl alone, so
 * no program misses them; on a Mac, search is Command+F.
 */

export type ShortcutAction = "search" | "bigger" | "smaller" | "size" | "board" | "leave" | "help";

export interface Shortcut {
  readonly action: ShortcutAction;
  /** The physical key, which is at the same position on every keyboard layout. */
  readonly code: string;
  /** The label of that key on most keyboards. */
  readonly key: string;
  readonly description: string;
}

export const SHORTCUTS: readonly Shortcut[] = [
  { action: "search", code: "KeyF", key: "F", description: "Search output" },
  { action: "bigger", code: "Period", key: ".", description: "Larger font" },
  { action: "smaller", code: "Comma", key: ",", description: "Smaller font" },
  { action: "size", code: "KeyS", key: "S", description: "Use my size" },
  { action: "board", code: "KeyB", key: "B", description: "Back to the board" },
  { action: "leave", code: "KeyE", key: "E", description: "Move the focus from the terminal to the toolbar" },
  { action: "help", code: "Slash", key: "/", description: "Show this help" },
];

/** The fields of a keyboard event that matter here. */
export interface KeyPress {
  readonly type: string;
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
}

/** The action of a key press, if it is a shortcut. */
export function shortcutAction(event: KeyPress, mac: boolean): ShortcutAction | undefined {
  if (event.type !== "keydown" || event.altKey) return undefined;
  const ctrlShift = event.ctrlKey && event.shiftKey && !event.metaKey;
  const macSearch = mac && event.metaKey && !event.ctrlKey && !event.shiftKey && event.code === "KeyF";
  if (macSearch) return "search";
  return ctrlShift ? SHORTCUTS.find(({ code }) => code === event.code)?.action : undefined;
}

/** Whether a key press is the browser's copy or paste, which the terminal must not see. */
export function clipboardKey(event: KeyPress): "copy" | "paste" | undefined {
  if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return undefined;
  return event.code === "KeyC" ? "copy" : event.code === "KeyV" ? "paste" : undefined;
}

/** A shortcut as shown to the user, such as `Ctrl+Shift+F`. */
export function shortcutText(shortcut: Shortcut, mac: boolean): string {
  if (mac && shortcut.action === "search") return "⌘F";
  return `Ctrl+Shift+${shortcut.key}`;
}
