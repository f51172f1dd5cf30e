/**
 * Runs a protocol over one connection after another. The state machines decide: the reconnector when to dial, the protocol
 * what to send. The driver does the IO for them, and owns the socket, the timer and the listeners.
 */
import { type Backoff, BROWSER } from "../core/backoff.js";
import { ABNORMAL, type ConnectionEnd, NORMAL } from "../core/close.js";
import { LATE, PROBE_WITHIN } from "../core/config.js";
import type { Protocol } from "../core/link/protocol.js";
import { Reconnector, type Status } from "../core/link/reconnect.js";
import type { Environment, LifecycleSignal, Socket, Target, TargetBuilder } from "./environment.js";
import type { ConnectionError, ConnectionState } from "./state.js";

/** The close code for a socket that is replaced. Not 1000, which would mean that the client leaves for good. */
const DROPPED = 4000;

/** The longest delay that `setTimeout` supports; it would fire at once for a longer one. A longer wait takes several timers. */
const MAX_DELAY = 2 ** 31 - 1;

export interface DriverOptions {
  readonly environment: Environment;
  readonly target: TargetBuilder;
  readonly backoff?: Backoff | undefined;
  readonly protocol: Protocol;
  /** Passes the next event of the protocol to the user's callbacks. Returns false if there is none. */
  readonly deliver: () => boolean;
  readonly show: (state: ConnectionState) => void;
  readonly report: (error: ConnectionError) => void;
}

/** One dial, and the connection that it opened. */
interface Dial {
  readonly generation: number;
  readonly since: number;
  target?: Target;
  socket?: Socket;
  opened: boolean;
  attached: boolean;
  /** Nothing was received since the last wake. If this dial turns out to be dead, the wake causes another at once. */
  suspect: boolean;
  /** The close code that the server announced in a message. */
  closing?: ConnectionEnd;
}

/** Connects, reconnects, and moves frames and events for one protocol. */
export class Driver {
  readonly #options: DriverOptions;
  readonly #environment: Environment;
  readonly #protocol: Protocol;
  readonly #reconnector: Reconnector;
  #unsubscribe: (() => void) | undefined;
  #dial: Dial | undefined;
  #timer: { id: unknown; at: number } | undefined;
  #state: ConnectionState = { name: "connecting" };
  #reason = "";
  /** Why the last dial or connection ended, for people. */
  #cause = "";
  #hidden = false;
  #disposed = false;
  #working = false;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#environment = options.environment;
    this.#protocol = options.protocol;
    this.#reconnector = new Reconnector(options.backoff ?? BROWSER);
  }

  /** Makes the first dial. */
  start(): void {
    const { lifecycle } = this.#environment;
    this.#unsubscribe = lifecycle.subscribe((signal) => this.#handleSignal(signal));
    this.#reconnector.start(this.now());
    if (lifecycle.hidden) this.#hide();
    this.work();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The number of the current dial, or 0. Lets a late callback find out that its connection was replaced. */
  get generation(): number {
    return this.#dial?.generation ?? 0;
  }

  now(): number {
    return this.#environment.timers.now();
  }

  /** Reconnects now: the user asked for it, or has logged in. */
  retry(): void {
    if (this.#disposed) return;
    if (this.#state.name === "needs-login") {
      this.#reconnector.redial(this.now());
      this.work();
    } else {
      this.#wake();
    }
  }

  /** The session exited: there is nothing more to receive. */
  end(): void {
    this.#reconnector.handleEnded();
    this.work();
  }

  /** The server announced the code with which it is about to close this connection. */
  closing(code: number, reason: string): void {
    if (this.#dial) this.#dial.closing = { kind: "code", code, reason, done: false };
  }

  /** Closes the connection for good. No callback is called afterwards. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#reconnector.handleEnded();
    this.#protocol.handleEnded(this.now());
    if (!isOver(this.#state)) this.#state = { name: "ended", reason: "" };
    this.#dropSocket(NORMAL, "client left");
    this.#release();
  }

  /**
   * Does all pending work, then sets the timer. To be called after each `handle*` of a state machine. A nested call, for
   * example from a callback that types, returns at once: the outer call does its work.
   */
  work(): void {
    if (this.#working || this.#disposed) return;
    this.#working = true;
    try {
      while (this.#step()) if (this.#disposed) return;
    } finally {
      this.#working = false;
    }
    this.#setTimer();
  }

  /** Does one piece of work. Returns false if there is none. */
  #step(): boolean {
    const dial = this.#dial;
    if (dial && !dial.attached && this.#protocol.attached) {
      dial.attached = true;
      this.#reconnector.handleAttached(dial.generation, this.now());
      return true;
    }
    return this.#doAction() || this.#options.deliver() || this.#transmit();
  }

  #doAction(): boolean {
    const action = this.#reconnector.pollAction();
    switch (action?.kind) {
      case undefined:
        return false;
      case "dial":
        this.#startDial(action.generation, action.freshTicket);
        return true;
      case "drop":
        if (this.#dial?.generation === action.generation) {
          const ended = this.#reconnector.status.name === "ended";
          const { suspect } = this.#dial;
          this.#cause = "the server did not answer in time";
          this.#dropSocket(ended ? NORMAL : DROPPED, ended ? "client left" : "superseded");
          this.#protocol.handleDisconnected(this.now());
          if (suspect) this.#wakeReconnector();
        }
        return true;
      case "show":
        this.#show(action.status);
        return true;
    }
  }

  #startDial(generation: number, freshTicket: boolean): void {
    const dial: Dial = { generation, since: this.now(), opened: false, attached: false, suspect: false };
    this.#dial = dial;
    // Events of a replaced dial are ignored.
    const ifCurrent = (then: () => void) => {
      if (this.#dial === dial && !this.#disposed) then();
    };
    const buildTarget = async () => this.#options.target({ freshTicket });
    buildTarget().then(
      (target) => ifCurrent(() => this.#open(dial, target, ifCurrent)),
      (cause: unknown) =>
        ifCurrent(() => {
          const message = `cannot determine where to connect: ${messageOf(cause)}`;
          this.#options.report({ source: "target", message, cause });
          this.#handleClosed(dial, closedBy(cause), message);
        }),
    );
  }

  #open(dial: Dial, target: Target, ifCurrent: (then: () => void) => void): void {
    dial.target = target;
    try {
      dial.socket = this.#environment.socket(target, {
        opened: () =>
          ifCurrent(() => {
            dial.opened = true;
            dial.suspect = false;
            this.#reconnector.handleOpened(dial.generation);
            this.#protocol.handleConnected(this.now(), target.key);
            this.work();
          }),
        received: (data) =>
          ifCurrent(() => {
            dial.suspect = false;
            this.#protocol.handleFrame(data, this.now());
            this.work();
          }),
        closed: (closed) => ifCurrent(() => this.#handleSocketClosed(dial, closed, ifCurrent)),
      });
    } catch (cause) {
      const message = `cannot create a WebSocket: ${messageOf(cause)}`;
      this.#options.report({ source: "socket", message, cause });
      this.#handleClosed(dial, { kind: "failed" }, message);
    }
  }

  #handleSocketClosed(dial: Dial, closed: ConnectionEnd, ifCurrent: (then: () => void) => void): void {
    const hasNoReason = closed.kind === "failed" || (closed.kind === "code" && closed.code === ABNORMAL);
    const explain = dial.target?.explain;
    if (dial.opened || !hasNoReason || !explain) return this.#handleClosed(dial, dial.closing ?? closed);
    explain().then(
      (explained) => ifCurrent(() => this.#handleClosed(dial, explained ?? closed)),
      () => ifCurrent(() => this.#handleClosed(dial, closed)),
    );
  }

  /** The dial failed, or its connection ended: because of `cause`, or as `closed` says. */
  #handleClosed(dial: Dial, closed: ConnectionEnd, cause = causeOf(closed, dial.opened)): void {
    this.#dial = undefined;
    this.#cause = cause;
    this.#reason = closed.kind === "code" ? closed.reason : "";
    this.#protocol.handleDisconnected(this.now());
    this.#reconnector.handleClosed(dial.generation, closed, this.#jitter(), this.now());
    if (dial.suspect) this.#wakeReconnector();
    this.work();
  }

  #transmit(): boolean {
    const dial = this.#dial;
    if (!dial?.opened || !dial.socket) return false;
    const transmit = this.#protocol.pollTransmit(this.now());
    if (!transmit) return false;
    if (transmit.kind === "close") {
      // The server broke the protocol, or was silent for too long. The next connection resumes.
      this.#dropSocket(transmit.code, transmit.reason);
      this.#handleClosed(dial, { kind: "failed" });
      return true;
    }
    try {
      dial.socket.send(transmit.frame);
    } catch {
      this.#dropSocket(DROPPED, "cannot send");
      this.#handleClosed(dial, { kind: "failed" });
    }
    return true;
  }

  #show(status: Status): void {
    this.#state = stateOf(status, this.#reason, this.#cause, this.now());
    if (isOver(this.#state)) {
      this.#protocol.handleEnded(this.now());
      this.#release();
    }
    this.#options.show(this.#state);
  }

  #handleSignal(signal: LifecycleSignal): void {
    if (signal === "offline") return;
    if (signal === "left") return this.#leave();
    if (signal === "hidden" || signal === "frozen") {
      if (!this.#hidden) this.#hide();
      this.work();
    } else {
      this.#wake();
    }
  }

  /** Closes the connection of a page that goes, so that others need not wait for it. A page that is restored dials again. */
  #leave(): void {
    if (!this.#hidden) this.#hide();
    const dial = this.#dial;
    if (!dial) return this.work();
    this.#dropSocket(NORMAL, "client left");
    this.#handleClosed(dial, { kind: "failed" }, "the page was left");
  }

  #hide(): void {
    this.#hidden = true;
    this.#reconnector.handleHidden(this.now());
  }

  /** Checks a connection that seems open, and dials at once if there is none. */
  #wake(): void {
    this.#protocol.handleWake(this.now());
    // A connection that was asleep for too long is closed here, so that the reconnector dials now and not after a delay.
    this.work();
    const dial = this.#dial;
    // A dial that has just begun needs no check.
    if (dial && (dial.opened || this.now() - dial.since > PROBE_WITHIN)) dial.suspect = true;
    this.#wakeReconnector();
    this.work();
  }

  /** Resets the count of attempts, and dials at once unless a dial is under way. */
  #wakeReconnector(): void {
    this.#reconnector.handleWake(this.now());
    this.#hidden = false;
    // The page is online again but still hidden: after this dial, one a minute.
    if (this.#environment.lifecycle.hidden) this.#hide();
  }

  #setTimer(): void {
    const at = Math.min(this.#protocol.pollTimeout() ?? Infinity, this.#reconnector.pollTimeout() ?? Infinity);
    if (this.#timer?.at === at) return;
    this.#clearTimer();
    if (at === Infinity) return;
    const delay = Math.min(Math.max(Math.ceil(at - this.now()), 0), MAX_DELAY);
    const id = this.#environment.timers.set(() => this.#handleTimer(at), delay);
    this.#timer = { id, at };
  }

  #handleTimer(due: number): void {
    this.#timer = undefined;
    const now = this.now();
    // Browsers delay the timers of hidden pages. In a visible page, a late timer means that the machine slept.
    if (now - due > LATE && !this.#environment.lifecycle.hidden) this.#wake();
    if (this.#disposed) return;
    const dialDue = this.#reconnector.pollTimeout();
    if (this.#dial && !this.#dial.target && dialDue !== undefined && dialDue <= now) {
      this.#options.report({ source: "target", message: "determining where to connect took too long; trying again" });
    }
    this.#protocol.handleTimeout(now);
    this.#reconnector.handleTimeout(this.#jitter(), now);
    this.work();
  }

  #clearTimer(): void {
    if (this.#timer) this.#environment.timers.clear(this.#timer.id);
    this.#timer = undefined;
  }

  /** Closes the current socket, if any, and ignores its events from now on. */
  #dropSocket(code: number, reason: string): void {
    const socket = this.#dial?.socket;
    this.#dial = undefined;
    try {
      socket?.close(code, reason);
    } catch {
      // It is dropped in any case.
    }
  }

  /** Removes every listener and timer. */
  #release(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#clearTimer();
  }

  #jitter(): number {
    return this.#environment.random() * 2 - 1;
  }
}

function isOver(state: ConnectionState): boolean {
  return state.name === "ended" || state.name === "gone";
}

function stateOf(status: Status, reason: string, cause: string, now: number): ConnectionState {
  switch (status.name) {
    case "offline":
      return { name: "offline", reason: cause };
    case "reconnecting":
      return { name: "reconnecting", attempt: status.attempt, delay: Math.max(status.at - now, 0) };
    case "gone":
      return { name: "gone", why: status.why, reason };
    case "ended":
      return { name: "ended", reason };
    case "needs-login":
      return { name: "needs-login", reason };
    default:
      return status;
  }
}

/** How a dial failed whose target builder threw: a refused request for a ticket says why, any other error does not. */
function closedBy(cause: unknown): ConnectionEnd {
  const closed = (cause as { closed?: ConnectionEnd } | undefined)?.closed;
  return closed?.kind === "refused" ? closed : { kind: "failed" };
}

/** Why a dial failed, or a connection ended, in words. */
function causeOf(closed: ConnectionEnd, opened: boolean): string {
  switch (closed.kind) {
    case "refused":
      return `the server refused it with HTTP status ${closed.status}`;
    case "code":
      if (closed.code !== ABNORMAL)
        return `the server closed it with code ${closed.code}${closed.reason && `: ${closed.reason}`}`;
      break;
    case "failed":
      break;
  }
  return opened ? "the connection was cut" : "the server cannot be reached";
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
