/** Settings and storage of this device. Where the browser refuses storage, nothing is remembered. */
import { type Backoff, BROWSER } from "@bowline/client";
import { openStore } from "@bowline/client/browser";

export interface Settings {
  theme: "system" | "light" | "dark";
  /** The terminal's font size in CSS pixels. */
  fontSize: number;
  /** The terminal's colours, by name. */
  palette: string;
  /** The terminal's font: the browser's default, the one that comes with the app, or `fontFamily`. */
  font: "default" | "bundled" | "installed";
  /** The name of an installed font; empty for the default. */
  fontFamily: string;
  /** Lines kept above the screen. An attach requests this many, and gets no more than the session keeps. */
  scrollback: number;
  cursorBlink: boolean;
  /** Whether text is copied when it is selected with the mouse. */
  copyOnSelect: boolean;
  /** xterm.js' screen reader mode: output is announced. */
  screenReader: boolean;
  /** Whether to render with a GPU, if there is one. */
  gpu: boolean;
  /** Whether a session is resized to this window when it is opened. */
  useMySize: boolean;
  /** Whether typing sets the size of a session to this window. */
  sizeFollowsTyping: boolean;
  /** When to show the key row; `auto` means on touch screens. */
  keyRow: "auto" | "always" | "never";
  /** Whether a bell in another session shows a notice. */
  bellNotice: boolean;
  /** Which key sends a message to an agent. With `ctrl-enter`, Enter starts a new line. */
  sendWith: "enter" | "ctrl-enter";
  /** Failed attempts after which a connection waits for the user; 0 for never. */
  reconnectTries: number;
  /** Whether a sound is played when a run succeeds. */
  finishedSound: boolean;
}

const SETTINGS_KEY = "bowline.settings";

/** The storage key of a value that belongs to the gateway at `path`: several gateways may share an origin. */
export function storageKey(name: string, path: string): string {
  return path === "/" ? `bowline.${name}` : `bowline.${name} ${path}`;
}

/** The range of terminal font sizes. */
export const FONT_SIZES = { min: 8, max: 28 } as const;
export const MAX_SCROLLBACK = 100_000;
export const MAX_TRIES = 1000;

const touch = typeof matchMedia === "function" && matchMedia("(pointer: coarse)").matches;

const DEFAULTS: Settings = {
  theme: "system",
  fontSize: touch ? 12 : 14,
  palette: "bowline",
  font: "default",
  fontFamily: "",
  scrollback: 5000,
  cursorBlink: false,
  copyOnSelect: false,
  screenReader: false,
  gpu: true,
  useMySize: false,
  sizeFollowsTyping: true,
  keyRow: "auto",
  bellNotice: true,
  // On-screen keyboards have no Shift+Enter; there, the button sends.
  sendWith: touch ? "ctrl-enter" : "enter",
  reconnectTries: BROWSER.tries ?? 0,
  finishedSound: false,
};

const store = openStore("local");

/** Parses stored settings; a missing or malformed value becomes its default. */
export function readSettings(stored: string | undefined, defaults: Settings = DEFAULTS): Settings {
  let found: Record<string, unknown> = {};
  try {
    found = Object(JSON.parse(stored ?? "{}")) as typeof found;
  } catch {
    // Damaged: use the defaults.
  }
  const valid = Object.entries(defaults).map(([name, value]: [string, unknown]) => [
    name,
    typeof found[name] === typeof value ? found[name] : value,
  ]);
  const settings = Object.fromEntries(valid) as unknown as Settings;
  if (!["system", "light", "dark"].includes(settings.theme)) settings.theme = defaults.theme;
  if (!["auto", "always", "never"].includes(settings.keyRow)) settings.keyRow = defaults.keyRow;
  if (!["enter", "ctrl-enter"].includes(settings.sendWith)) settings.sendWith = defaults.sendWith;
  if (!["default", "bundled", "installed"].includes(settings.font)) settings.font = defaults.font;
  settings.fontSize = clampFont(settings.fontSize);
  settings.scrollback = clampScrollback(settings.scrollback);
  settings.reconnectTries = clampTries(settings.reconnectTries);
  return settings;
}

/** Rounds to half pixels and clamps to `FONT_SIZES`; NaN becomes the default. */
export function clampFont(size: number): number {
  return Math.min(Math.max(Math.round(size * 2) / 2 || DEFAULTS.fontSize, FONT_SIZES.min), FONT_SIZES.max);
}

/** Rounds and clamps to `MAX_SCROLLBACK`; NaN becomes the default. */
export function clampScrollback(lines: number): number {
  return Number.isNaN(lines) ? DEFAULTS.scrollback : Math.min(Math.max(Math.round(lines), 0), MAX_SCROLLBACK);
}

/** Rounds and clamps to `MAX_TRIES`; NaN becomes the default. */
export function clampTries(tries: number): number {
  return Number.isNaN(tries) ? DEFAULTS.reconnectTries : Math.min(Math.max(Math.round(tries), 0), MAX_TRIES);
}

/** When the connections of this page are retried. */
export function backoff(): Backoff {
  return { ...BROWSER, tries: settings.reconnectTries || null };
}

/** The settings of this device. After a change, call `saveSettings`. */
export const settings = $state(readSettings(store.get(SETTINGS_KEY)));

export function saveSettings(): void {
  store.set(SETTINGS_KEY, JSON.stringify(settings));
}

/** Storage that all tabs on this device share. */
export const deviceStore = store;
/** Storage of this tab. */
export const tabStore = openStore("session");
