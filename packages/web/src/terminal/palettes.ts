/** Well-known colour palettes for terminals, with the values that their authors publish. */
import type { ITheme } from "@xterm/xterm";
import type { PaletteName } from "../state/palette_names.ts";
import { DARK, LIGHT } from "./themes.ts";

/** The light and the dark variant of a palette. */
export interface Palette {
  readonly dark: ITheme;
  readonly light: ITheme;
}

/**
 * A theme from its background, foreground, cursor and selection, and the sixteen colours: black, red, green, yellow, blue,
 * magenta, cyan and white, then the bright ones.
 */
function theme(ground: string, colours: string): ITheme {
  const [background = "", foreground = "", cursor = "", selectionBackground = ""] = ground.split(" ");
  const [black, red, green, yellow, blue, magenta, cyan, white, ...bright] = colours.split(" ");
  const [brightBlack, brightRed, brightGreen, brightYellow, brightBlue, brightMagenta, brightCyan, brightWhite] =
    bright;
  return {
    background,
    foreground,
    cursor,
    cursorAccent: background,
    selectionBackground,
    overviewRulerBorder: background,
    ...{ black, red, green, yellow, blue, magenta, cyan, white },
    ...{ brightBlack, brightRed, brightGreen, brightYellow, brightBlue, brightMagenta, brightCyan, brightWhite },
  } as ITheme;
}

const SOLARIZED =
  "#073642 #dc322f #859900 #b58900 #268bd2 #d33682 #2aa198 #eee8d5 #002b36 #cb4b16 #586e75 #657b83 #839496 #6c71c4 #93a1a1 #fdf6e3";

/** By the value of the setting. */
export const PALETTES: Readonly<Record<PaletteName, Palette>> = {
  bowline: { dark: DARK, light: LIGHT },
  catppuccin: {
    dark: theme(
      "#1e1e2e #cdd6f4 #f5e0dc #585b70",
      "#45475a #f38ba8 #a6e3a1 #f9e2af #89b4fa #f5c2e7 #94e2d5 #bac2de #585b70 #f38ba8 #a6e3a1 #f9e2af #89b4fa #f5c2e7 #94e2d5 #a6adc8",
    ),
    light: theme(
      "#eff1f5 #4c4f69 #dc8a78 #acb0be",
      "#5c5f77 #d20f39 #40a02b #df8e1d #1e66f5 #ea76cb #179299 #acb0be #6c6f85 #d20f39 #40a02b #df8e1d #1e66f5 #ea76cb #179299 #bcc0cc",
    ),
  },
  gruvbox: {
    dark: theme(
      "#282828 #ebdbb2 #ebdbb2 #504945",
      "#282828 #cc241d #98971a #d79921 #458588 #b16286 #689d6a #a89984 #928374 #fb4934 #b8bb26 #fabd2f #83a598 #d3869b #8ec07c #ebdbb2",
    ),
    light: theme(
      "#fbf1c7 #3c3836 #3c3836 #d5c4a1",
      "#fbf1c7 #cc241d #98971a #d79921 #458588 #b16286 #689d6a #7c6f64 #928374 #9d0006 #79740e #b57614 #076678 #8f3f71 #427b58 #3c3836",
    ),
  },
  one: {
    dark: theme(
      "#282c34 #dcdfe4 #a3b3cc #474e5d",
      "#282c34 #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #dcdfe4 #5d677a #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #dcdfe4",
    ),
    light: theme(
      "#fafafa #383a42 #bfceff #bfceff",
      "#383a42 #e45649 #50a14f #c18401 #0184bc #a626a4 #0997b3 #fafafa #4f525e #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #ffffff",
    ),
  },
  rose: {
    dark: theme(
      "#191724 #e0def4 #e0def4 #403d52",
      "#26233a #eb6f92 #31748f #f6c177 #9ccfd8 #c4a7e7 #ebbcba #e0def4 #6e6a86 #eb6f92 #31748f #f6c177 #9ccfd8 #c4a7e7 #ebbcba #e0def4",
    ),
    light: theme(
      "#faf4ed #575279 #575279 #dfdad9",
      "#f2e9e1 #b4637a #286983 #ea9d34 #56949f #907aa9 #d7827e #575279 #9893a5 #b4637a #286983 #ea9d34 #56949f #907aa9 #d7827e #575279",
    ),
  },
  solarized: {
    dark: theme("#002b36 #839496 #93a1a1 #073642", SOLARIZED),
    light: theme("#fdf6e3 #657b83 #586e75 #eee8d5", SOLARIZED),
  },
};

/** The theme of a palette; of one that this version does not know, that of the default. */
export function paletteTheme(name: string, dark: boolean): ITheme {
  const palette = PALETTES[Object.hasOwn(PALETTES, name) ? (name as PaletteName) : "bowline"];
  return dark ? palette.dark : palette.light;
}
