/**
 * Touch gestures on a terminal: one finger scrolls, two change the font size, a tap is a click. xterm.js 6.0
 * has no touch support.
 */

export interface TouchHandlers {
  /** `scale` is the distance of two fingers relative to the start of the pinch. */
  onPinch(scale: number): void;
  onPinchStart(): void;
  /** Whether the terminal may be larger than its container, and so can be panned. */
  canPan(): boolean;
}

/** A shorter movement, in pixels, is a tap. */
const TAP_DISTANCE = 8;
/** Legacy `wheelDeltaY` units per pixel: xterm.js scrolls 50 pixels for 120 units. */
const WHEEL_DELTA = 120 / 50;
/** The fraction of its speed that a scroll keeps per frame after the finger is lifted. */
const GLIDE = 0.94;
/** Gliding stops below this speed, in pixels per frame. */
const MIN_SPEED = 0.4;

/** Handles touches on `element`, and sends wheel events to `target`. The returned function stops it. */
export function handleTouch(element: HTMLElement, target: () => Element | null, handlers: TouchHandlers): () => void {
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  const abort = new AbortController();
  let last: { x: number; y: number } | undefined;
  let moved = 0;
  let speed = 0;
  let pinchStart = 0;
  let frame = 0;

  // xterm.js decides what a wheel event does: scroll, report the mouse, or send arrow keys.
  const scroll = (deltaY: number, x: number, y: number) => {
    const wheel = new WheelEvent("wheel", { deltaY, clientX: x, clientY: y, bubbles: true, cancelable: true });
    // xterm.js reads this legacy property first, and synthetic events do not set it.
    Object.defineProperty(wheel, "wheelDeltaY", { value: -deltaY * WHEEL_DELTA });
    target()?.dispatchEvent(wheel);
  };
  // Pans within the container first, then scrolls the terminal by the rest.
  const move = (across: number, down: number, x: number, y: number) => {
    let rest = down;
    if (handlers.canPan()) {
      const before = element.scrollTop;
      element.scrollLeft += across;
      element.scrollTop += down;
      rest -= element.scrollTop - before;
    }
    // Scroll positions are rounded to device pixels, so ignore a rest below one.
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
      pinchStart = distance(event);
      handlers.onPinchStart();
    }
    last = touch && { x: touch.clientX, y: touch.clientY };
    moved = speed = 0;
  });
  on("touchmove", (event) => {
    const [touch] = event.touches;
    if (!touch || !last) return;
    event.preventDefault();
    if (event.touches.length === 2) {
      if (pinchStart > 0) handlers.onPinch(distance(event) / pinchStart);
      return;
    }
    const delta = last.y - touch.clientY;
    const across = last.x - touch.clientX;
    moved += Math.abs(delta) + Math.abs(across);
    last = { x: touch.clientX, y: touch.clientY };
    if (moved < TAP_DISTANCE) return;
    speed = speed * 0.6 + delta * 0.4;
    move(across, delta, last.x, last.y);
  });
  const up = (event: TouchEvent) => {
    if (event.touches.length > 0) {
      const [touch] = event.touches;
      last = touch && { x: touch.clientX, y: touch.clientY };
      return;
    }
    // A movement is not a click.
    if (moved >= TAP_DISTANCE || pinchStart > 0) event.preventDefault();
    const from = last;
    const gliding = pinchStart === 0 && moved >= TAP_DISTANCE && !reducedMotion.matches;
    pinchStart = 0;
    last = undefined;
    const glide = () => {
      speed *= GLIDE;
      if (!from || Math.abs(speed) < MIN_SPEED) return;
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
