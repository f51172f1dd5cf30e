/** The world of a connection where there is no page: Node, and other runtimes. */
import { sleepAwareClock } from "../core/clock.js";
import type { Environment, Lifecycle, SocketFactory, Timers } from "./environment.js";
import { standardSockets, type StandardWebSocketClass } from "./sockets.js";

/** The runtime's own timers, with a clock that counts sleep. */
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

/** There is no page: somebody always looks, and the user's word or a timer that comes too late wakes it. */
export const ALWAYS: Lifecycle = { hidden: false, subscribe: () => () => {} };

/** The world of a program. Without `socket`, the runtime's own WebSocket (Node from 22 on) is used. */
export function plainEnvironment(socket: SocketFactory = ownSockets()): Environment {
  return { socket, timers: realTimers(), random: Math.random, lifecycle: ALWAYS };
}

function ownSockets(): SocketFactory {
  const own = (globalThis as { WebSocket?: StandardWebSocketClass }).WebSocket;
  if (!own) throw new Error("this runtime has no WebSocket: pass wsSockets(WebSocket) of the `ws` package");
  return standardSockets(own);
}
