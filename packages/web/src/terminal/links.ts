/** Links in the output of a program: which click opens them, and how they are shown. */

/** A link under the pointer. */
export interface HoveredLink {
  readonly url: string;
  /** The position of the pointer in the window, in CSS pixels. */
  readonly x: number;
  readonly y: number;
}

/** Schemes of links that may be opened. */
const SCHEME = /^(https?|mailto):/i;

/**
 * Whether a click opens a link: with Ctrl, on a Mac with Command, or as a tap. A plain click belongs to the program, to
 * the selection and to the focus. `pointer` is the type of the pointer event.
 */
export function opensLink(event: Pick<MouseEvent, "ctrlKey" | "metaKey">, pointer: string, mac: boolean): boolean {
  return pointer === "touch" || (mac ? event.metaKey : event.ctrlKey);
}

export function openLink(url: string): void {
  if (SCHEME.test(url)) window.open(url, "_blank", "noopener,noreferrer");
}

/** A link as it is shown: as the browser would request it, so that no character can hide another. */
export function shownLink(url: string): string {
  try {
    return new URL(url).href;
  } catch {
    return encodeURI(url);
  }
}
