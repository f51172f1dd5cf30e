/** The terminal's colours, light and dark. Every one of the sixteen is readable on its background. */
import type { ITheme } from "@xterm/xterm";

/** On a dark background. */
export const DARK: ITheme = {
  background: "#101416",
  foreground: "#dfe5e6",
  cursor: "#6fd3b2",
  cursorAccent: "#101416",
  selectionBackground: "#35524a",
  overviewRulerBorder: "#101416",
  black: "#1c2225",
  red: "#f28b82",
  green: "#8fd19e",
  yellow: "#e8c070",
  blue: "#8ab4f8",
  magenta: "#d7a6e8",
  cyan: "#78d3d6",
  white: "#cfd6d8",
  brightBlack: "#7f8c92",
  brightRed: "#ffaaa1",
  brightGreen: "#b0e8bb",
  brightYellow: "#ffd98c",
  brightBlue: "#aecbfa",
  brightMagenta: "#e9c6f5",
  brightCyan: "#a4ecee",
  brightWhite: "#ffffff",
};

/** On a light background. */
export const LIGHT: ITheme = {
  background: "#fbfcfa",
  foreground: "#1d2427",
  cursor: "#0b7359",
  cursorAccent: "#fbfcfa",
  selectionBackground: "#c3e3d8",
  overviewRulerBorder: "#fbfcfa",
  black: "#1d2427",
  red: "#b3261e",
  green: "#1f6f3a",
  yellow: "#7a5600",
  blue: "#1a56b8",
  magenta: "#87309e",
  cyan: "#04686e",
  white: "#5d686d",
  brightBlack: "#68747a",
  brightRed: "#c5372e",
  brightGreen: "#2a7f47",
  brightYellow: "#8a6200",
  brightBlue: "#2b66c9",
  brightMagenta: "#9a44b1",
  brightCyan: "#0e757b",
  brightWhite: "#3c474c",
};
