/** Storage that never throws. */
import { isClientId } from "../core/ids.js";
import type { ClientId } from "../core/wire.js";

/** A few words kept for later; in memory only, where the page may keep nothing. */
export interface Store {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  remove(name: string): void;
}

/** As much of `localStorage` and `sessionStorage` as is used. */
type Backing = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/**
 * `localStorage` or `sessionStorage`. In private mode, with storage disabled or full, each access may throw; what could not be
 * written is then kept in memory until the page goes.
 */
export function openStore(kind: "local" | "session", open: () => Backing = () => backingOf(kind)): Store {
  const memory = new Map<string, string | undefined>();
  const attempt = <T>(access: (backing: Backing) => T): { value: T } | undefined => {
    try {
      return { value: access(open()) };
    } catch {
      return undefined;
    }
  };
  return {
    get(name) {
      if (memory.has(name)) return memory.get(name);
      return attempt((backing) => backing.getItem(name))?.value ?? undefined;
    },
    set(name, value) {
      memory.delete(name);
      if (!attempt((backing) => backing.setItem(name, value))) memory.set(name, value);
    },
    remove(name) {
      memory.delete(name);
      if (!attempt((backing) => backing.removeItem(name))) memory.set(name, undefined);
    },
  };
}

function backingOf(kind: "local" | "session"): Backing {
  return kind === "local" ? window.localStorage : window.sessionStorage;
}

/** Under which name `sessionStorage` has this page load's client id, for the next. */
const CLIENT = "bowline.client";

/**
 * The client id before a reload, for `was`; from now on, `client` is kept for the next. A duplicated tab copies it and so asks
 * to inherit the size, which it only does once the first tab is gone.
 */
export function reloadedFrom(client: ClientId, store: Store = openStore("session")): ClientId | undefined {
  const before = store.get(CLIENT);
  store.set(CLIENT, client);
  return before !== undefined && isClientId(before) && before !== client ? before : undefined;
}
