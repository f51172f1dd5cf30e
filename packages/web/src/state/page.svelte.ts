/** The page around the app: its address, its colours, the room above an on-screen keyboard, and the time. */
import { settings, tabStore } from "./device.svelte.ts";
import { hrefOf, loginCode, parseRoute, type Route } from "./route.ts";

const PLACE = "bowline.place";
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");
const narrow = matchMedia("(max-width: 640px)");

/** What the page is right now. */
class Page {
  route: Route = $state.raw({ name: "board" });
  #systemDark = $state(darkSystem.matches);
  /** Fingers, not a mouse. */
  touch = $state(coarse.matches);
  narrow = $state(narrow.matches);
  visible = $state(document.visibilityState === "visible");
  /** The time, half a minute at a time. */
  now = $state(Date.now());

  get dark(): boolean {
    return settings.theme === "system" ? this.#systemDark : settings.theme === "dark";
  }

  /** Begins to follow the page. */
  start(): void {
    this.#read();
    addEventListener("hashchange", () => this.#read());
    darkSystem.addEventListener("change", () => (this.#systemDark = darkSystem.matches));
    coarse.addEventListener("change", () => (this.touch = coarse.matches));
    narrow.addEventListener("change", () => (this.narrow = narrow.matches));
    document.addEventListener("visibilitychange", () => {
      this.visible = document.visibilityState === "visible";
      this.now = Date.now();
    });
    setInterval(() => {
      if (this.visible) this.now = Date.now();
    }, 30_000);
    followViewport();
  }

  /** Goes somewhere. */
  go(route: Route): void {
    location.hash = hrefOf(route);
  }

  /** Takes a login code out of the address bar, and goes back to where this tab was. */
  forgetCode(): void {
    const before = tabStore.get(PLACE) ?? "#/";
    history.replaceState(history.state, "", before);
    this.#read();
  }

  #read(): void {
    // A login code is not a place.
    if (loginCode(location.hash) !== undefined) return;
    this.route = parseRoute(location.hash);
    tabStore.set(PLACE, hrefOf(this.route));
  }
}

/**
 * Keeps the app within what is visible. An on-screen keyboard covers part of the page on some systems without resizing it;
 * `visualViewport` knows.
 */
function followViewport(): void {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const root = document.documentElement;
  const follow = () => {
    // While somebody zooms by hand, the layout stays.
    if (viewport.scale > 1.01) return;
    root.style.setProperty("--app-height", `${Math.round(viewport.height)}px`);
    root.style.setProperty("--app-top", `${Math.round(viewport.offsetTop)}px`);
    // A keyboard covers the place below, whose inset then counts for nothing.
    root.classList.toggle("keyboard", window.innerHeight - viewport.height > 120);
  };
  viewport.addEventListener("resize", follow);
  viewport.addEventListener("scroll", follow);
  follow();
}

/** The page. */
export const page = new Page();
