/** The storage of a page for the entries of a `Post`: `localStorage`, one key for each. */
import type { PostStorage } from "../connection/post.js";

/** The part of `localStorage` that is used. */
type Backing = Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">;

/** The part of a `Window` that tells of changes by other tabs. */
type StorageEvents = Pick<EventTarget, "addEventListener" | "removeEventListener">;

export interface PostStorageOptions {
  /** The path of the gateway, with a slash at its end; that of the page by default. Several gateways may share an origin. */
  readonly path?: string;
  /** `window.localStorage` by default. */
  readonly open?: () => Backing;
  /** `window` by default. */
  readonly events?: () => StorageEvents;
}

/**
 * Keeps entries in `localStorage`, which the tabs of a page share. In private mode, or with storage disabled or full, any access may
 * throw; `Post` then keeps the entries in memory. Nothing is accessed before the first use.
 */
export function postStorage({
  path,
  open = () => window.localStorage,
  events = () => window,
}: PostStorageOptions = {}): PostStorage {
  const prefix = () => prefixOf(path ?? new URL("./", document.baseURI).pathname);
  return {
    load() {
      const backing = open();
      const keys = Array.from({ length: backing.length }, (_, i) => backing.key(i));
      return keys.flatMap((key) => {
        const id = idOf(key, prefix());
        const stored = id === undefined ? null : backing.getItem(key as string);
        return id === undefined || stored === null ? [] : [{ id, stored }];
      });
    },
    save: (id, stored) => open().setItem(prefix() + id, stored),
    remove: (id) => open().removeItem(prefix() + id),
    has: (id) => open().getItem(prefix() + id) !== null,
    subscribe(removed) {
      const source = events();
      // The browser reports only the changes of other tabs.
      const handle = (event: Event) => {
        const { key, newValue } = event as StorageEvent;
        if (key === null) return removed(undefined);
        const id = idOf(key, prefix());
        if (id !== undefined && newValue === null) removed(id);
      };
      source.addEventListener("storage", handle);
      return () => source.removeEventListener("storage", handle);
    },
  };
}

/** What the keys of a gateway begin with; the id of the entry follows. No path has a space, so that none matches one below it. */
function prefixOf(path: string): string {
  return path === "/" ? "bowline.post." : `bowline.post ${path} `;
}

function idOf(key: string | null, prefix: string): string | undefined {
  return key?.startsWith(prefix) ? key.slice(prefix.length) : undefined;
}
