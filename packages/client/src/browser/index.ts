/** What a page adds: its lifecycle, its WebSocket, and storage that may refuse. */
import type { Environment, Lifecycle } from "../connection/environment.js";

/** The page as the world of a connection. */
export declare function browserEnvironment(): Environment;

/** The page's lifecycle: visibilitychange, pageshow from the back/forward cache, freeze and resume, online. */
export declare function pageLifecycle(): Lifecycle;

/** Storage that never throws: in private mode, or with storage disabled, it keeps things in memory. */
export interface Store {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  remove(name: string): void;
}

/** `localStorage` or `sessionStorage`, or memory. */
export declare function openStore(kind: "local" | "session"): Store;

/** The client id before a reload, for `was`, and from now on the given one. A duplicated tab gets it too, which is harmless. */
export declare function reloadedFrom(client: string, store?: Store): string | undefined;
