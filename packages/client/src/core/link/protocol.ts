/** The interface between a driver and the client's end of a protocol: an attach, or the event stream. */
import type { Frame } from "../frame.js";

/** A frame to send; or the driver must close the connection, call `handleDisconnected`, and dial again. */
export type Transmit =
  | { readonly kind: "send"; readonly frame: Frame }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** A protocol that continues over many connections. `handle*` takes input, `poll*` returns work; time is an argument. */
export interface Protocol {
  /** Whether the server has accepted this connection. */
  readonly attached: boolean;
  /** A transport is open. `key` is the key of a browser login, for the first message. */
  handleConnected(now: number, key?: string): void;
  handleDisconnected(now: number): void;
  handleFrame(frame: Frame, now: number): void;
  /** The machine slept, or the page was hidden: a connection that seems open must be checked. */
  handleWake(now: number): void;
  /** To be called at the time that {@link pollTimeout} returns. */
  handleTimeout(now: number): void;
  /** There will be no more connections. */
  handleEnded(now: number): void;
  /** The next frame to send. */
  pollTransmit(now: number): Transmit | undefined;
  /** When to call {@link handleTimeout}. */
  pollTimeout(): number | undefined;
}
