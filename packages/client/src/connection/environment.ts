/**
 * The world of a connection: sockets, time, chance and the page. All of it is passed in, so that tests own all of it.
 */
import type { Closed } from "../core/close.js";

/** What a connection needs of the world. `browserEnvironment()` and `plainEnvironment()` make one. */
export interface Environment {
  /** Opens a WebSocket. */
  readonly socket: SocketFactory;
  /** Time. */
  readonly timers: Timers;
  /** A number in [0, 1), like `Math.random`. */
  readonly random: () => number;
  /** Whether anybody looks, and what wakes a connection. */
  readonly lifecycle: Lifecycle;
}

/** A clock in milliseconds that never goes back and counts sleep, and timers. */
export interface Timers {
  now(): number;
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

/** Where to dial, and how to be let in. */
export interface Target {
  /** A `ws:` or `wss:` URL. */
  readonly url: string;
  /** Subprotocols to offer. */
  readonly protocols: readonly string[];
  /** Headers, for sockets that can send some. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A browser's origin key, for the first message. */
  readonly key?: string;
  /**
   * Asks why a dial failed, when the socket could not say: a refused upgrade shows its status to nobody but itself.
   * Resolves to nothing when it does not know either.
   */
  readonly explain?: () => Promise<Closed | undefined>;
}

/**
 * Says where to dial, anew for each dial. A failure is reported and counts as a failed dial; an answer that takes longer than
 * 15 s comes too late. `freshTicket` says that the last ticket was refused.
 */
export type TargetBuilder = (request: { freshTicket: boolean }) => Target | Promise<Target>;

/** Opens a socket. It may throw, which counts as a failed dial. */
export type SocketFactory = (target: Target, events: SocketEvents) => Socket;

/** An open, or opening, WebSocket. */
export interface Socket {
  send(data: string | Uint8Array): void;
  close(code: number, reason: string): void;
}

/** What a socket tells. Nothing after `closed`. */
export interface SocketEvents {
  opened(): void;
  received(data: string | Uint8Array): void;
  closed(closed: Closed): void;
}

/** What happens to a page. `hidden` and `frozen` stop the backoff; the others wake the connection. */
export type LifecycleSignal = "hidden" | "frozen" | "visible" | "restored" | "resumed" | "online";

/** Whether anybody looks, and what wakes a connection. */
export interface Lifecycle {
  /** Nobody looks now. */
  readonly hidden: boolean;
  /** Calls the listener until the returned function is called. */
  subscribe(listener: (signal: LifecycleSignal) => void): () => void;
}
