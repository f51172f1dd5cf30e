/** A clock that counts up while the page is visible. */
import { page } from "../state/page.svelte.ts";

/** The milliseconds since `since`, a time in `Date.now()` milliseconds; 0 if it is undefined. Call it while a component initializes. */
export function elapsedClock(since: () => number | undefined): { readonly ms: number } {
  let ms = $state(0);
  $effect(() => {
    const from = since();
    if (from === undefined || !page.visible) return;
    const count = () => (ms = Math.max(Date.now() - from, 0));
    count();
    const timer = setInterval(count, 1000);
    return () => clearInterval(timer);
  });
  return {
    get ms() {
      return ms;
    },
  };
}
