/** The storage of a page for the entries of a `Post`: `localStorage`, one key for each. */
import type { PostStorage } from "../connection/post.js";

/** The id of the entry follows. */
const PREFIX = "bowline.post.";

/** The part of `localStorage` that is used. */
type Backing = Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">;

/** The part of a `Window` that tells of changes by other tabs. */
type StorageEvents = Pick<EventTarget, "addEventListener" | "removeEventListener">;

/**
 * Keeps entries in `localStorage`, which the tabs of a page share. In private mode, or with storage disabled or full, any access may
 * throw; `Post` then keeps the entries in memory. Nothing is accessed before the first use.
 */
export function postStorage(
  open: () => Backing = () => window.localStorage,
  events: () => StorageEvents = () => window,
): PostStorage {
  return {
    load() {
      const backing = open();
      const keys = Array.from({ length: backing.length }, (_, i) => backing.key(i));
      return keys.flatMap((key) => {
        const id = idOf(key);
        const stored = id === undefined ? null : backing.getItem(key as string);
        return id === undefined || stored === null ? [] : [{ id, stored }];
      });
    },
    save: (id, stored) => open().setItem(PREFIX + id, stored),
    remove: (id) => open().removeItem(PREFIX + id),
    has: (id) => open().getItem(PREFIX + id) !== null,
    subscribe(removed) {
      const source = events();
      // The browser reports only the changes of other tabs.
      const handle = (event: Event) => {
        const { key, newValue } = event as StorageEvent;
        if (key === null) return removed(undefined);
        const id = idOf(key);
        if (id !== undefined && newValue === null) removed(id);
      };
      source.addEventListener("storage", handle);
      return () => source.removeEventListener("storage", handle);
    },
  };
}

function idOf(key: string | null): string | undefined {
  return key?.startsWith(PREFIX) ? key.slice(PREFIX.length) : undefined;
}
