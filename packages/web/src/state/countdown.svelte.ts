/** Counts down the seconds to a point in time, while the page is visible. */
import { page } from "./page.svelte.ts";

/** Counts down to `due`, a time in `Date.now()` milliseconds; 0 for none. Call it while a component initializes. */
export function countdown(due: () => number): { readonly seconds: number } {
  let seconds = $state(0);
  $effect(() => {
    const at = due();
    const count = () => (seconds = Math.max(Math.ceil((at - Date.now()) / 1000), 0));
    count();
    if (at === 0 || !page.visible) return;
    const timer = setInterval(count, 250);
    return () => clearInterval(timer);
  });
  return {
    get seconds() {
      return seconds;
    },
  };
}
