/**
 * What a connection uses from outside: sockets, time, randomness and page visibility. All of it is passed in, so that tests
 * can control it.
 */
import type { ConnectionEnd } from "../core/close.js";

/** What a connection uses from outside. `browserEnvironment()` and `plainEnvironment()` return one. */
export interface Environment {
  readonly socket: SocketFactory;
  readonly timers: Timers;
  /** A number in [0, 1), like `Math.random`. */
  readonly random: () => number;
  readonly lifecycle: Lifecycle;
}

/** Timers, and a clock in milliseconds that never goes back and includes time during which the machine slept. */
export interface Timers {
  now(): number;
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

/** Where to connect, and with which credentials. */
export interface Target {
  /** A `ws:` or `wss:` URL. */
  readonly url: string;
  /** The WebSocket subprotocols to offer. */
  readonly protocols: readonly string[];
  /** For WebSocket classes that can send headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The key of a browser login; it is sent in the first message. */
  readonly key?: string;
  /**
   * Finds out why connecting failed. It is called when the WebSocket does not report the HTTP status of a refused upgrade;
   * most classes do not. Resolves to `undefined` if the reason stays unknown.
   */
  readonly explain?: () => Promise<ConnectionEnd | undefined>;
}

/**
 * Returns where to connect; called before each attempt. An exception, or a result that takes more than 15 s, is reported and
 * counts as a failed attempt. `freshTicket` is true if the server refused the last ticket.
 */
export type TargetBuilder = (request: { freshTicket: boolean }) => Target | Promise<Target>;

/** Opens a WebSocket. If it throws, that counts as a failed attempt. */
export type SocketFactory = (target: Target, events: SocketEvents) => Socket;

/** A WebSocket that is open, or about to be. */
export interface Socket {
  send(data: string | Uint8Array): void;
  close(code: number, reason: string): void;
}

/** The callbacks of a socket. None is called after `closed`. */
export interface SocketEvents {
  opened(): void;
  received(data: string | Uint8Array): void;
  closed(closed: ConnectionEnd): void;
}

/**
 * What happened to a page. After `hidden` and `frozen`, a lost connection is tried at most once a minute. With `left`, the page is
 * about to go, perhaps to the back/forward cache: a connection is closed, so that the server need not wait for it to return. After
 * `offline`, commands wait; connections find out by themselves. The others wake a connection: an open one is checked, a lost one is
 * tried at once.
 */
export type LifecycleSignal = "hidden" | "frozen" | "left" | "visible" | "restored" | "resumed" | "online" | "offline";

/** Whether the page is visible, and what wakes a connection. */
export interface Lifecycle {
  readonly hidden: boolean;
  /** The device has no network. */
  readonly offline?: boolean;
  /** Calls `listener` for each signal, until the returned function is called. */
  subscribe(listener: (signal: LifecycleSignal) => void): () => void;
}
