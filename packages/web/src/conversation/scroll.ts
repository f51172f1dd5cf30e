/**
 * Keeps a scrolling list where the reader is: at the end while the reader follows it, and otherwise at the element that the
 * reader sees first, whatever is added, removed or resized around it.
 */

/** Pixels from the end within which the reader counts as following. */
const END = 40;
/** Pixels from either end within which more is wanted. */
const NEAR = 800;

export interface ScrollCallbacks {
  /** Whether the reader follows the end changed. */
  following(following: boolean): void;
  /** The reader came near the beginning of what is in the list. */
  nearStart(): void;
  /** The reader came near the end of what is in the list. */
  nearEnd(): void;
  /** Whether the list has everything up to the end, so that the reader who is there follows it. */
  isComplete(): boolean;
}

export class ListScroll {
  #following = true;
  /** The first element that the reader sees, and its distance from the top of the view. */
  #anchor: { readonly element: Element; readonly top: number } | undefined;
  #lastTop = 0;
  /** The highest `scrollTop` that was possible then. */
  #lastMost = 0;
  /** Nothing is moved until the next `show` or `follow`. */
  #held = false;
  readonly #view: HTMLElement;
  readonly #list: HTMLElement;
  readonly #on: ScrollCallbacks;
  readonly #observer: ResizeObserver;

  /** `view` scrolls; the children of `list`, which is inside it, are the elements. */
  constructor(view: HTMLElement, list: HTMLElement, on: ScrollCallbacks) {
    this.#view = view;
    this.#list = list;
    this.#on = on;
    this.#observer = new ResizeObserver(() => this.settle());
    for (const element of [view, ...view.children]) this.#observer.observe(element);
    view.addEventListener("scroll", this.#handleScroll, { passive: true });
    this.settle();
  }

  /** Restores the reader's place after a change of the list. */
  settle(): void {
    if (this.#held) return;
    const view = this.#view;
    if (this.#following) view.scrollTop = view.scrollHeight;
    else if (this.#anchor?.element.isConnected) {
      const moved = this.#topOf(this.#anchor.element) - this.#anchor.top;
      if (Math.abs(moved) >= 1) view.scrollTop += moved;
    } else this.#setAnchor();
    this.#remember();
    this.#want();
  }

  /** Goes to the end, and follows it. */
  follow(): void {
    this.#held = false;
    this.#setFollowing(true);
    this.settle();
  }

  /** Stays where it is, whatever is added, until the reader goes to the end. */
  unfollow(): void {
    this.#setFollowing(false);
  }

  /** Moves nothing while other elements are put into the list, until `show` is called. */
  hold(): void {
    this.#held = true;
  }

  /** Goes to an element; without one, stays near where it is. */
  show(element: Element | null | undefined): void {
    this.#held = false;
    this.#setFollowing(false);
    element?.scrollIntoView({ block: "center" });
    this.#remember();
    this.#setAnchor();
  }

  stop(): void {
    this.#observer.disconnect();
    this.#view.removeEventListener("scroll", this.#handleScroll);
  }

  #handleScroll = (): void => {
    if (this.#held) return;
    const { scrollTop, scrollHeight, clientHeight } = this.#view;
    const most = scrollHeight - clientHeight;
    // What is added below moves nothing, and a list that became shorter moves the reader up.
    const isReader = scrollTop < this.#lastTop && most >= this.#lastMost;
    if (isReader) this.#setFollowing(false);
    else if (most - scrollTop < END && this.#on.isComplete()) this.#setFollowing(true);
    this.#remember();
    this.#setAnchor();
    this.#want();
  };

  #remember(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#view;
    this.#lastTop = scrollTop;
    this.#lastMost = scrollHeight - clientHeight;
  }

  #setFollowing(following: boolean): void {
    if (this.#following === following) return;
    this.#following = following;
    this.#on.following(following);
  }

  #want(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#view;
    if (scrollTop < NEAR) this.#on.nearStart();
    if (scrollHeight - scrollTop - clientHeight < NEAR) this.#on.nearEnd();
  }

  #setAnchor(): void {
    const { children } = this.#list;
    let [low, high] = [0, children.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#topOf(children[middle]!) + (children[middle] as HTMLElement).offsetHeight <= 0) low = middle + 1;
      else high = middle;
    }
    const element = children[low];
    this.#anchor = element && { element, top: this.#topOf(element) };
  }

  #topOf(element: Element): number {
    return element.getBoundingClientRect().top - this.#view.getBoundingClientRect().top;
  }
}
