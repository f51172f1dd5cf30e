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
  send: "M10 16V4M5 9l5-5 5 5",
  stop: "M6 6h8v8H6z",
  attach: "M14.5 9.5 9 15a3.2 3.2 0 0 1-4.5-4.5l6-6a2.2 2.2 0 0 1 3.1 3.1l-5.7 5.7a1 1 0 0 1-1.5-1.4L11.5 7",
  check: "M4.5 10.5 8.5 14.5 15.5 6",
  right: "M7.5 5l5 5-5 5",
  terminal: "M3 4h14v12H3zM6 8l2 2-2 2M10.5 12.5H14",
  file: "M5.5 2.5h6l3 3v12h-9zM11.5 2.5v3h3",
  edit: "M4 16l.8-3.4L13 4.4l2.6 2.6-8.2 8.2L4 16Z",
  globe: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM3 10h14M10 3c2 2 3 4.3 3 7s-1 5-3 7c-2-2-3-4.3-3-7s1-5 3-7Z",
  thought: "M10 3.5a5 5 0 0 0-3 9V15h6v-2.5a5 5 0 0 0-3-9ZM8 17.5h4",
  tool: "M12.5 3.5a4 4 0 0 0-4.9 5.2L3.5 12.8v3.7h3.7l4.1-4.1a4 4 0 0 0 5.2-4.9L14 10l-3-1-1-3 2.5-2.5Z",
  list: "M7.5 5.5h9M7.5 10h9M7.5 14.5h9M3.5 5.5h.01M3.5 10h.01M3.5 14.5h.01",
  paste: "M7 4H5v13h10V4h-2M7.5 2.5h5v3h-5z",
} as const;

export type IconName = keyof typeof PATHS;
