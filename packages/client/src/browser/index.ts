/** What a page adds: its lifecycle, its WebSocket, and storage that may refuse. */
import type { Environment } from "../connection/environment.js";
import { realTimers } from "../connection/plain.js";
import { standardSockets } from "../connection/sockets.js";
import { pageLifecycle } from "./lifecycle.js";

export { pageLifecycle, type PageWindow } from "./lifecycle.js";
export { openStore, reloadedFrom, type Store } from "./store.js";

/** The page as the world of a connection. */
export function browserEnvironment(): Environment {
  return {
    socket: (target, events) => standardSockets(WebSocket)(target, events),
    timers: realTimers(),
    random: Math.random,
    lifecycle: pageLifecycle(),
  };
}
