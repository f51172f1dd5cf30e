/** Key-value storage in the page that never throws, and the client id from before a reload. */
import { isClientId } from "../core/ids.js";
import type { ClientId } from "../core/wire.js";

/** A few strings kept by the browser, or in memory where the browser allows no storage. */
export interface Store {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  remove(name: string): void;
}

/** The part of `localStorage` and `sessionStorage` that is used. */
type Backing = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/**
 * Opens `localStorage` or `sessionStorage`. In private mode, or with storage disabled or full, any access may throw; a value
 * that cannot be written is then kept in memory until the page closes.
 */
export function openStore(kind: "local" | "session", open: () => Backing = () => backingOf(kind)): Store {
  /** Values that could not be written; `undefined` for one that could not be removed. */
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

/** The `sessionStorage` key under which a page load leaves its client id for the next one. */
const CLIENT = "bowline.client";

/**
 * Returns the client id that this page had before a reload, for the option `was`, and stores `client` for the next reload.
 *
 * A duplicated tab inherits the stored id, too, and so also asks for the size ownership of the first tab. The session grants
 * that only once the first tab is gone.
 */
export function previousClientId(client: ClientId, store: Store = openStore("session")): ClientId | undefined {
  const before = store.get(CLIENT);
  store.set(CLIENT, client);
  return before !== undefined && isClientId(before) && before !== client ? before : undefined;
}
