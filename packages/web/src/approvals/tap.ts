/**
 * Ignores presses that were not meant for a card: it appeared or moved under the finger only a moment ago, or a key is held. The
 * rules are plain; the rest connects them to an element.
 */

/** How long a card has to be in its place before a press counts, in milliseconds. */
export const SETTLE_MS = 400;
/** How far a card may move unnoticed, in CSS pixels. */
const TOLERANCE = 8;
/** How often the place of a card is looked at, in milliseconds. */
const SAMPLE_MS = 100;

/** Where a card is. */
export interface Place {
  /** The top in the window. */
  readonly inWindow: number;
  /** The top in what is scrolled. */
  readonly inContent: number;
}

/** Knows since when a card is where it is. */
export class TapGuard {
  #place: Place;
  #since: number;

  constructor(place: Place, now: number) {
    this.#place = place;
    this.#since = now;
  }

  /**
   * Takes where the card is now. Scrolling is no move, since the content stays in order, and neither is content that grows above
   * while the view follows its end, since the card stays where it is in the window.
   */
  handlePlace(place: Place, now: number): void {
    const inWindow = Math.abs(place.inWindow - this.#place.inWindow) > TOLERANCE;
    const inContent = Math.abs(place.inContent - this.#place.inContent) > TOLERANCE;
    if (inWindow && inContent) this.#since = now;
    this.#place = {
      inWindow: inWindow ? place.inWindow : this.#place.inWindow,
      inContent: inContent ? place.inContent : this.#place.inContent,
    };
  }

  /** Whether a press that begins now counts. */
  accepts(now: number): boolean {
    return now - this.#since >= SETTLE_MS;
  }
}

/** A key on a control. */
export interface KeyPress {
  readonly key: string;
  /** Whether the key is held and this is not its first event. */
  readonly repeat: boolean;
  /** The tag of the control, in capitals. */
  readonly control: string;
}

/**
 * Whether a key press is the repetition of one that presses buttons or sends forms. Held, Enter clicks a button again and again,
 * so that it would also confirm. Text fields repeat characters as usual.
 */
export function isRepeatedPress({ key, repeat, control }: KeyPress): boolean {
  if (!repeat) return false;
  return key === "Enter" ? control !== "TEXTAREA" : key === " " && control === "BUTTON";
}

/**
 * Makes an attachment that guards an element, and tells whether presses count now. Of the clicks by keyboard, only those of a
 * held key are ignored.
 */
export function guardTaps(tell: (counts: boolean) => void): (element: HTMLElement) => () => void {
  return (element) => {
    const guard = new TapGuard(placeOf(element), performance.now());
    /** Whether the last press began on this element, when presses counted. */
    let accepted = false;
    let told = false;
    const look = () => {
      guard.handlePlace(placeOf(element), performance.now());
      const counts = guard.accepts(performance.now());
      if (counts !== told) tell((told = counts));
      return counts;
    };
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") look();
    }, SAMPLE_MS);
    const handleAnyPress = () => (accepted = false);
    const handlePress = () => (accepted = look());
    const handleClick = (event: MouseEvent) => {
      // Keyboards and assistive programs click without a press; `detail` is 0 then.
      if (event.detail === 0 || accepted) return;
      event.preventDefault();
      event.stopPropagation();
    };
    const handleKey = (event: KeyboardEvent) => {
      const control = event.target instanceof Element ? event.target.tagName : "";
      if (isRepeatedPress({ key: event.key, repeat: event.repeat, control })) event.preventDefault();
    };
    window.addEventListener("pointerdown", handleAnyPress, true);
    element.addEventListener("pointerdown", handlePress, true);
    element.addEventListener("click", handleClick, true);
    element.addEventListener("keydown", handleKey, true);
    return () => {
      clearInterval(timer);
      window.removeEventListener("pointerdown", handleAnyPress, true);
      element.removeEventListener("pointerdown", handlePress, true);
      element.removeEventListener("click", handleClick, true);
      element.removeEventListener("keydown", handleKey, true);
    };
  };
}

function placeOf(element: HTMLElement): Place {
  const inWindow = element.getBoundingClientRect().top;
  let scrolled = 0;
  for (let above = element.parentElement; above; above = above.parentElement) scrolled += above.scrollTop;
  return { inWindow, inContent: inWindow + scrolled };
}
