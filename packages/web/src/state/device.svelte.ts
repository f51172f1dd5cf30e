/** What this device remembers: settings, and nothing that another device should know. Storage may refuse; then nothing is kept. */
import { openStore } from "@bowline/client/browser";

/** How the app behaves on this device. */
export interface Settings {
  /** Light, dark, or what the system says. */
  theme: "system" | "light" | "dark";
  /** The terminal's font size in CSS pixels. */
  fontSize: number;
  /** The terminal's font; empty for the system's. */
  fontFamily: string;
  /** Lines kept above the screen while the page is open. An attach asks for as many, and gets those that the session keeps. */
  scrollback: number;
  cursorBlink: boolean;
  /** xterm's screen-reader mode: output is read out. */
  screenReader: boolean;
  /** Draw by GPU where there is one. */
  gpu: boolean;
  /** A session takes this window's size as soon as it is opened here. */
  useMySize: boolean;
  /** The row of keys: on touch screens, always or never. */
  keyRow: "auto" | "always" | "never";
  /** A bell shows a notice. */
  bellNotice: boolean;
}

const SETTINGS = "bowline.settings";

/** Under which name something of the gateway at this path of the origin is kept. */
export function keptAs(what: string, path: string): string {
  return path === "/" ? `bowline.${what}` : `bowline.${what} ${path}`;
}

/** Font sizes that can be chosen. */
export const FONT_SIZES = { least: 8, most: 28 } as const;
/** As many lines can be kept above the screen. */
export const SCROLLBACK_MOST = 100_000;

const touch = typeof matchMedia === "function" && matchMedia("(pointer: coarse)").matches;

const DEFAULTS: Settings = {
  theme: "system",
  fontSize: touch ? 12 : 14,
  fontFamily: "",
  scrollback: 5000,
  cursorBlink: false,
  screenReader: false,
  gpu: true,
  useMySize: false,
  keyRow: "auto",
  bellNotice: true,
};

const store = openStore("local");

/** Takes from something stored what has the right form, and the default for the rest. */
export function readSettings(stored: string | undefined, defaults: Settings = DEFAULTS): Settings {
  let found: Record<string, unknown> = {};
  try {
    found = Object(JSON.parse(stored ?? "{}")) as typeof found;
  } catch {
    // Somebody else's, or damaged: the defaults are as good.
  }
  const right = Object.entries(defaults).map(([name, value]: [string, unknown]) => [
    name,
    typeof found[name] === typeof value ? found[name] : value,
  ]);
  const settings = Object.fromEntries(right) as unknown as Settings;
  if (!["system", "light", "dark"].includes(settings.theme)) settings.theme = defaults.theme;
  if (!["auto", "always", "never"].includes(settings.keyRow)) settings.keyRow = defaults.keyRow;
  settings.fontSize = clampFont(settings.fontSize);
  settings.scrollback = clampScrollback(settings.scrollback);
  return settings;
}

/** The nearest font size that can be chosen. */
export function clampFont(size: number): number {
  return Math.min(Math.max(Math.round(size * 2) / 2 || DEFAULTS.fontSize, FONT_SIZES.least), FONT_SIZES.most);
}

/** The nearest number of lines that can be kept; the default for what is no number. */
export function clampScrollback(lines: number): number {
  return Number.isNaN(lines) ? DEFAULTS.scrollback : Math.min(Math.max(Math.round(lines), 0), SCROLLBACK_MOST);
}

/** The settings of this device. Whoever changes one calls `keepSettings`. */
export const settings = $state(readSettings(store.get(SETTINGS)));

/** Keeps the settings as they are now. */
export function keepSettings(): void {
  store.set(SETTINGS, JSON.stringify(settings));
}

/** The device's own store, for what else it remembers. */
export const deviceStore = store;
/** This tab's store. */
export const tabStore = openStore("session");
