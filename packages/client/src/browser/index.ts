/** The environment of a web page: its WebSocket, its visibility, and storage that never throws. */
import type { Environment } from "../connection/environment.js";
import { realTimers } from "../connection/plain.js";
import { standardSockets } from "../connection/sockets.js";
import { pageLifecycle } from "./lifecycle.js";

export { pageLifecycle, type PageWindow } from "./lifecycle.js";
export { postStorage, type PostStorageOptions } from "./post.js";
export { openStore, previousClientId, type Store } from "./store.js";

/** An environment that uses the page's own WebSocket, timers and visibility. */
export function browserEnvironment(): Environment {
  return {
    socket: (target, events) => standardSockets(WebSocket)(target, events),
    timers: realTimers(),
    random: Math.random,
    lifecycle: pageLifecycle(),
  };
}
