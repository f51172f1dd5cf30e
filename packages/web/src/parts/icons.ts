/** The paths of the icons, on a 20 by 20 grid. */
export const PATHS = {
  back: "M12 4 6 10l6 6",
  plus: "M10 4v12M4 10h12",
  more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
  search: "M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12Zm4.3-1.7L17 17",
  close: "M5 5l10 10M15 5 5 15",
  up: "M5 12.5 10 7.5l5 5",
  down: "M5 7.5l5 5 5-5",
  bell: "M5 14V9a5 5 0 0 1 10 0v5l1.5 1.5h-13L5 14ZM8.5 17.5h3",
  people:
    "M7.5 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2.5 16.5c0-2.8 2.2-4.5 5-4.5s5 1.7 5 4.5M13 4.3a3 3 0 0 1 0 5.4M15 12.5c1.6.7 2.5 2 2.5 4",
  restart: "M15.5 6.5A6.5 6.5 0 1 0 16.5 11M16 3v4h-4",
  compose: "M4 16h12M4 12.5 12.5 4 16 7.5 7.5 16H4Z",
  paste: "M7 4H5v13h10V4h-2M7.5 2.5h5v3h-5z",
} as const;

export type IconName = keyof typeof PATHS;
