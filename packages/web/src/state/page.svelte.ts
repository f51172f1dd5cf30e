/**
 * The browser page around the app: its route, colour scheme, visible height above an on-screen keyboard, and
 * the time.
 */
import { settings, tabStore } from "./device.svelte.ts";
import { hrefOf, loginCode, parseRoute, type Route } from "./route.ts";

const ROUTE_KEY = "bowline.place";
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");
const narrow = matchMedia("(max-width: 640px)");

class Page {
  route: Route = $state.raw({ name: "board" });
  #systemDark = $state(darkSystem.matches);
  /** Whether the main pointer is a finger. */
  touch = $state(coarse.matches);
  narrow = $state(narrow.matches);
  visible = $state(document.visibilityState === "visible");
  /** The time, updated every 30 seconds while the page is visible. */
  now = $state(Date.now());

  get dark(): boolean {
    return settings.theme === "system" ? this.#systemDark : settings.theme === "dark";
  }

  /** Reads the route and starts listening to the page's events. */
  start(): void {
    this.#readRoute();
    addEventListener("hashchange", () => this.#readRoute());
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

  go(route: Route): void {
    location.hash = hrefOf(route);
  }

  /** Removes a login code from the address bar, and returns to this tab's last route. */
  removeLoginCode(): void {
    const before = tabStore.get(ROUTE_KEY) ?? "#/";
    history.replaceState(history.state, "", before);
    this.#readRoute();
  }

  #readRoute(): void {
    // A login code is not a route.
    if (loginCode(location.hash) !== undefined) return;
    this.route = parseRoute(location.hash);
    tabStore.set(ROUTE_KEY, hrefOf(this.route));
  }
}

/**
 * Fits the app into the visual viewport: on some systems, an on-screen keyboard covers the page without
 * resizing it.
 */
function followViewport(): void {
  const viewport = window.visualViewport;
  if (!viewport) return;
  const root = document.documentElement;
  const follow = () => {
    // While the user has zoomed in, the layout stays as it is.
    if (viewport.scale > 1.01) return;
    root.style.setProperty("--app-height", `${Math.round(viewport.height)}px`);
    root.style.setProperty("--app-top", `${Math.round(viewport.offsetTop)}px`);
    // An on-screen keyboard covers the bottom safe area, so its inset is not needed.
    root.classList.toggle("keyboard", window.innerHeight - viewport.height > 120);
  };
  viewport.addEventListener("resize", follow);
  viewport.addEventListener("scroll", follow);
  follow();
}

export const page = new Page();
