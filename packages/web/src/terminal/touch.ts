/** Fingers on a terminal: one scrolls, two change the font size, a tap is a click. xterm.js 6.0 knows nothing of fingers. */

/** What fingers lead to. */
export interface TouchEvents {
  /** Two fingers have this distance, compared with when they came down. */
  pinched(scale: number): void;
  /** Two fingers came down. */
  pinching(): void;
  /** Whether the terminal may be larger than its place, and is moved in it. */
  pans(): boolean;
}

/** A movement shorter than this, in pixels, is a tap. */
const TAP = 8;
/** Of the old measure of wheels, for a pixel: xterm.js scrolls by 50 pixels for 120. */
const WHEEL_DELTA = 120 / 50;
/** How much of its speed a scroll keeps from frame to frame after the finger is up. */
const GLIDE = 0.94;
/** Pixels a frame below which it stops. */
const STOPPED = 0.4;

/** Follows fingers on `element`; the returned function stops it. */
export function followTouch(element: HTMLElement, target: () => Element | null, events: TouchEvents): () => void {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const abort = new AbortController();
  let last: { x: number; y: number } | undefined;
  let moved = 0;
  let speed = 0;
  let apart = 0;
  let frame = 0;

  // A wheel event reaches whatever xterm.js would do with a wheel: scroll, report the mouse, or send arrow keys.
  const scroll = (deltaY: number, x: number, y: number) => {
    const wheel = new WheelEvent("wheel", { deltaY, clientX: x, clientY: y, bubbles: true, cancelable: true });
    // xterm.js looks at this old measure first, which is nothing in an event that a page makes.
    Object.defineProperty(wheel, "wheelDeltaY", { value: -deltaY * WHEEL_DELTA });
    target()?.dispatchEvent(wheel);
  };
  // First within its place, then through what the terminal has.
  const move = (across: number, down: number, x: number, y: number) => {
    let rest = down;
    if (events.pans()) {
      const before = element.scrollTop;
      element.scrollLeft += across;
      element.scrollTop += down;
      rest -= element.scrollTop - before;
    }
    // Places are kept in device pixels: less than one is no rest.
    if (Math.abs(rest) >= 1 || rest === down) scroll(rest, x, y);
  };
  const distance = ({ touches: [a, b] }: TouchEvent) =>
    a && b ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 0;
  const on = (type: "touchstart" | "touchmove" | "touchend" | "touchcancel", handle: (event: TouchEvent) => void) =>
    element.addEventListener(type, handle, { passive: false, signal: abort.signal });

  on("touchstart", (event) => {
    cancelAnimationFrame(frame);
    const [touch] = event.touches;
    if (event.touches.length === 2) {
      apart = distance(event);
      events.pinching();
    }
    last = touch && { x: touch.clientX, y: touch.clientY };
    moved = speed = 0;
  });
  on("touchmove", (event) => {
    const [touch] = event.touches;
    if (!touch || !last) return;
    event.preventDefault();
    if (event.touches.length === 2) {
      if (apart > 0) events.pinched(distance(event) / apart);
      return;
    }
    const delta = last.y - touch.clientY;
    const across = last.x - touch.clientX;
    moved += Math.abs(delta) + Math.abs(across);
    last = { x: touch.clientX, y: touch.clientY };
    if (moved < TAP) return;
    speed = speed * 0.6 + delta * 0.4;
    move(across, delta, last.x, last.y);
  });
  const up = (event: TouchEvent) => {
    if (event.touches.length > 0) {
      const [touch] = event.touches;
      last = touch && { x: touch.clientX, y: touch.clientY };
      return;
    }
    // What moved is no click.
    if (moved >= TAP || apart > 0) event.preventDefault();
    const from = last;
    const gliding = apart === 0 && moved >= TAP && !still.matches;
    apart = 0;
    last = undefined;
    const glide = () => {
      speed *= GLIDE;
      if (!from || Math.abs(speed) < STOPPED) return;
      move(0, speed, from.x, from.y);
      frame = requestAnimationFrame(glide);
    };
    if (gliding) frame = requestAnimationFrame(glide);
  };
  on("touchend", up);
  on("touchcancel", up);
  return () => {
    cancelAnimationFrame(frame);
    abort.abort();
  };
}
