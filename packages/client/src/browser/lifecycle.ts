/** The page's lifecycle: visibilitychange, pagehide, pageshow from the back/forward cache, freeze and resume, online and offline. */
import type { Lifecycle, LifecycleSignal } from "../connection/environment.js";

/** The part of a `Window` that {@link pageLifecycle} uses. */
export interface PageWindow extends Pick<EventTarget, "addEventListener" | "removeEventListener"> {
  readonly document: Pick<Document, "visibilityState" | "addEventListener" | "removeEventListener">;
  readonly navigator?: Pick<Navigator, "onLine">;
}

/** The lifecycle of a page. It has listeners on the page only while it has a subscriber. */
export function pageLifecycle(page: PageWindow = window): Lifecycle {
  const { document } = page;
  const isHidden = () => document.visibilityState === "hidden";
  return {
    get hidden() {
      return isHidden();
    },
    get offline() {
      return page.navigator?.onLine === false;
    },
    subscribe(listener) {
      const sources: [
        Pick<EventTarget, "addEventListener" | "removeEventListener">,
        string,
        (event: Event) => LifecycleSignal | undefined,
      ][] = [
        [document, "visibilitychange", () => (isHidden() ? "hidden" : "visible")],
        [document, "freeze", () => "frozen"],
        [document, "resume", () => "resumed"],
        [page, "pagehide", () => "left"],
        // Without `persisted` it is an ordinary page load, not a return from the back/forward cache.
        [page, "pageshow", (event) => ((event as PageTransitionEvent).persisted ? "restored" : undefined)],
        [page, "online", () => "online"],
        [page, "offline", () => "offline"],
      ];
      const removers = sources.map(([source, type, signalOf]) => {
        const handle = (event: Event) => {
          const signal = signalOf(event);
          if (signal) listener(signal);
        };
        source.addEventListener(type, handle);
        return () => source.removeEventListener(type, handle);
      });
      return () => removers.splice(0).forEach((remove) => remove());
    },
  };
}
