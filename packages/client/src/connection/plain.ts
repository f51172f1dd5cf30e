/** The environment of a program without a page: Node and other runtimes. */
import { sleepAwareClock } from "../core/clock.js";
import type { Environment, Lifecycle, SocketFactory, Timers } from "./environment.js";
import { standardSockets, type StandardWebSocketClass } from "./sockets.js";

/** The runtime's own timers, with a clock that includes time during which the machine slept. */
export function realTimers(): Timers {
  return {
    now: sleepAwareClock(
      () => performance.now(),
      () => Date.now(),
    ),
    set: (callback, ms) => setTimeout(callback, ms),
    clear: (timer) => clearTimeout(timer as number),
  };
}

/** Never hidden. Only `retry()`, or a timer that fires late because the machine slept, wakes the connection. */
const ALWAYS_VISIBLE: Lifecycle = { hidden: false, subscribe: () => () => {} };

/** The environment of a program. By default it uses the runtime's own WebSocket, which Node has from version 22. */
export function plainEnvironment(socket: SocketFactory = builtinSockets()): Environment {
  return { socket, timers: realTimers(), random: Math.random, lifecycle: ALWAYS_VISIBLE };
}

function builtinSockets(): SocketFactory {
  const builtin = (globalThis as { WebSocket?: StandardWebSocketClass }).WebSocket;
  if (!builtin) {
    throw new Error("this runtime has no WebSocket: install the package `ws` and pass wsSockets(WebSocket)");
  }
  return standardSockets(builtin);
}
