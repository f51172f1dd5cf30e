/** The names of the terminal's palettes, which the settings list without loading the terminal. */

/** The values of the setting, with their labels. */
export const PALETTE_NAMES = [
  ["bowline", "Bowline"],
  ["catppuccin", "Catppuccin"],
  ["gruvbox", "Gruvbox"],
  ["one", "One Half"],
  ["rose", "Rosé Pine"],
  ["solarized", "Solarized"],
] as const;

export type PaletteName = (typeof PALETTE_NAMES)[number][0];
