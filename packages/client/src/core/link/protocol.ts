/** What a connection carries: the client's end of an attach or of the event stream, as its driver sees it. */
import type { Frame } from "../frame.js";

/** A frame to send, or the order to give the connection up: close it, report it gone, dial again. */
export type Transmit =
  | { readonly kind: "send"; readonly frame: Frame }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** A protocol that goes on over many connections. Facts come in by `handle*`, work goes out by `poll*`; time is an argument. */
export interface Protocol {
  /** The server has answered on this connection. */
  readonly attached: boolean;
  /** A transport is open. `key` is a browser's origin key, for the first message. */
  handleConnected(now: number, key?: string): void;
  /** The transport is gone. */
  handleDisconnected(now: number): void;
  /** A frame came in. */
  handleFrame(frame: Frame, now: number): void;
  /** The machine slept, or the page was hidden: a connection that seems open is not believed. */
  handleWake(now: number): void;
  /** Time has passed. */
  handleTimeout(now: number): void;
  /** Reconnecting ended for good. */
  handleEnded(now: number): void;
  /** What the connection is to carry next. */
  pollTransmit(now: number): Transmit | undefined;
  /** When {@link handleTimeout} is to be called. */
  pollTimeout(): number | undefined;
}
