/**
 * Runs one protocol over connection after connection: it reads and writes for the state machines, which decide. The
 * reconnector decides when to dial, the protocol what to send; this file owns the socket, the timer and the listeners.
 */
import { type Backoff, BROWSER } from "../core/backoff.js";
import { ABNORMAL, type Closed, NORMAL } from "../core/close.js";
import { LATE, PROBE_WITHIN } from "../core/config.js";
import type { Protocol } from "../core/link/protocol.js";
import { Reconnector, type Status } from "../core/link/reconnect.js";
import type { Environment, LifecycleSignal, Socket, Target, TargetBuilder } from "./environment.js";
import type { ConnectionError, ConnectionState } from "./state.js";

/** How a superseded socket is closed: not 1000, which would say that the client leaves for good. */
const DROPPED = 4000;

/** The longest delay that timers know; a longer one would be over at once. What is due later is looked at again then. */
const LONGEST = 2 ** 31 - 1;

/** What a driver is made of. */
export interface DriverOptions {
  readonly environment: Environment;
  readonly target: TargetBuilder;
  readonly backoff?: Backoff | undefined;
  readonly protocol: Protocol;
  /** Hands the next event of the protocol to the user. False when there was none. */
  readonly deliver: () => boolean;
  readonly show: (state: ConnectionState) => void;
  readonly report: (error: ConnectionError) => void;
}

/** One dial and the connection it led to. */
interface Dial {
  readonly generation: number;
  readonly since: number;
  target?: Target;
  socket?: Socket;
  opened: boolean;
  attached: boolean;
  /** A wake found it under way, and nothing was heard of it since: if it is lost, the wake still calls for a dial. */
  doubted: boolean;
  /** What the server said, in words, that it closes with. */
  closing?: Closed;
}

/** The life of a connection. */
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

  /** The state. */
  get state(): ConnectionState {
    return this.#state;
  }

  /** The dial that counts, for what outlives a connection. */
  get generation(): number {
    return this.#dial?.generation ?? 0;
  }

  /** The time. */
  now(): number {
    return this.#environment.timers.now();
  }

  /** The user asked, or has logged in. */
  retry(): void {
    if (this.#disposed) return;
    if (this.#state.name === "needs-login") {
      this.#reconnector.redial(this.now());
      this.work();
    } else {
      this.#wake();
    }
  }

  /** The session exited: there is nothing more to come. */
  end(): void {
    this.#reconnector.handleEnded();
    this.work();
  }

  /** The server said in a message with which code it closes this connection. */
  closing(code: number, reason: string): void {
    if (this.#dial) this.#dial.closing = { kind: "code", code, reason, done: false };
  }

  /** Leaves for good, and calls nothing back any more. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#reconnector.handleEnded();
    this.#protocol.handleEnded(this.now());
    if (!isOver(this.#state)) this.#state = { name: "ended", reason: "" };
    this.#letGo(NORMAL, "left");
    this.#release();
  }

  /**
   * Does everything that there is to do, then sets the timer. Called after each fact; a call from within (a callback that
   * types, say) is part of the work under way.
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

  /** One thing. False when there is nothing to do. */
  #step(): boolean {
    const dial = this.#dial;
    if (dial && !dial.attached && this.#protocol.attached) {
      dial.attached = true;
      this.#reconnector.handleAttached(dial.generation, this.now());
      return true;
    }
    return this.#act() || this.#options.deliver() || this.#transmit();
  }

  #act(): boolean {
    const action = this.#reconnector.pollAction();
    switch (action?.kind) {
      case undefined:
        return false;
      case "dial":
        this.#startDial(action.generation, action.freshTicket);
        return true;
      case "drop":
        if (this.#dial?.generation === action.generation) {
          const left = this.#reconnector.status.name === "ended";
          const { doubted } = this.#dial;
          this.#letGo(left ? NORMAL : DROPPED, left ? "left" : "superseded");
          this.#protocol.handleDisconnected(this.now());
          if (doubted) this.#wakeReconnector();
        }
        return true;
      case "show":
        this.#show(action.status);
        return true;
    }
  }

  #startDial(generation: number, freshTicket: boolean): void {
    const dial: Dial = { generation, since: this.now(), opened: false, attached: false, doubted: false };
    this.#dial = dial;
    // What a superseded dial leads to is nobody's business any more.
    const ifCurrent = (then: () => void) => {
      if (this.#dial === dial && !this.#disposed) then();
    };
    const ask = async () => this.#options.target({ freshTicket });
    ask().then(
      (target) => ifCurrent(() => this.#open(dial, target, ifCurrent)),
      (cause: unknown) =>
        ifCurrent(() => {
          this.#options.report({ source: "target", message: `where to dial is not known: ${messageOf(cause)}`, cause });
          this.#closed(dial, closedBy(cause));
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
            dial.doubted = false;
            this.#reconnector.handleOpened(dial.generation);
            this.#protocol.handleConnected(this.now(), target.key);
            this.work();
          }),
        received: (data) =>
          ifCurrent(() => {
            dial.doubted = false;
            this.#protocol.handleFrame(data, this.now());
            this.work();
          }),
        closed: (closed) => ifCurrent(() => this.#handleSocketClosed(dial, closed, ifCurrent)),
      });
    } catch (cause) {
      this.#options.report({ source: "socket", message: `no socket could be made: ${messageOf(cause)}`, cause });
      this.#closed(dial, { kind: "failed" });
    }
  }

  #handleSocketClosed(dial: Dial, closed: Closed, ifCurrent: (then: () => void) => void): void {
    const mute = closed.kind === "failed" || (closed.kind === "code" && closed.code === ABNORMAL);
    const explain = dial.target?.explain;
    if (dial.opened || !mute || !explain) return this.#closed(dial, dial.closing ?? closed);
    explain().then(
      (explained) => ifCurrent(() => this.#closed(dial, explained ?? closed)),
      () => ifCurrent(() => this.#closed(dial, closed)),
    );
  }

  /** A dial failed, or its connection ended. */
  #closed(dial: Dial, closed: Closed): void {
    this.#dial = undefined;
    this.#reason = closed.kind === "code" ? closed.reason : "";
    this.#protocol.handleDisconnected(this.now());
    this.#reconnector.handleClosed(dial.generation, closed, this.#jitter(), this.now());
    if (dial.doubted) this.#wakeReconnector();
    this.work();
  }

  #transmit(): boolean {
    const dial = this.#dial;
    if (!dial?.opened || !dial.socket) return false;
    const transmit = this.#protocol.pollTransmit(this.now());
    if (!transmit) return false;
    if (transmit.kind === "close") {
      // Something made no sense, or nothing came for too long: the next connection resumes.
      this.#letGo(transmit.code, transmit.reason);
      this.#closed(dial, { kind: "failed" });
      return true;
    }
    try {
      dial.socket.send(transmit.frame);
    } catch {
      this.#letGo(DROPPED, "cannot send");
      this.#closed(dial, { kind: "failed" });
    }
    return true;
  }

  #show(status: Status): void {
    this.#state = stateOf(status, this.#reason, this.now());
    if (isOver(this.#state)) {
      this.#protocol.handleEnded(this.now());
      this.#release();
    }
    this.#options.show(this.#state);
  }

  #handleSignal(signal: LifecycleSignal): void {
    if (signal === "hidden" || signal === "frozen") {
      if (!this.#hidden) this.#hide();
      this.work();
    } else {
      this.#wake();
    }
  }

  #hide(): void {
    this.#hidden = true;
    this.#reconnector.handleHidden(this.now());
  }

  /** A connection that seems open is not believed, one that is lost is dialled at once. */
  #wake(): void {
    this.#protocol.handleWake(this.now());
    // One that slept for too long is given up here, so that the reconnector dials now and not after a delay.
    this.work();
    const dial = this.#dial;
    // A dial of this moment is the wake's own.
    if (dial && (dial.opened || this.now() - dial.since > PROBE_WITHIN)) dial.doubted = true;
    this.#wakeReconnector();
    this.work();
  }

  /** Tries reset, and a dial at once unless one is under way. */
  #wakeReconnector(): void {
    this.#reconnector.handleWake(this.now());
    this.#hidden = false;
    // Back online, and still nobody looks: this one dial, then a try a minute.
    if (this.#environment.lifecycle.hidden) this.#hide();
  }

  #setTimer(): void {
    const at = Math.min(this.#protocol.pollTimeout() ?? Infinity, this.#reconnector.pollTimeout() ?? Infinity);
    if (this.#timer?.at === at) return;
    this.#clearTimer();
    if (at === Infinity) return;
    const delay = Math.min(Math.max(Math.ceil(at - this.now()), 0), LONGEST);
    const id = this.#environment.timers.set(() => this.#handleTimer(at), delay);
    this.#timer = { id, at };
  }

  #handleTimer(due: number): void {
    this.#timer = undefined;
    const now = this.now();
    // Timers of hidden pages are late by design; of others, because the machine slept.
    if (now - due > LATE && !this.#environment.lifecycle.hidden) this.#wake();
    if (this.#disposed) return;
    const dialDue = this.#reconnector.pollTimeout();
    if (this.#dial && !this.#dial.target && dialDue !== undefined && dialDue <= now) {
      this.#options.report({ source: "target", message: "where to dial was not answered in time; trying again" });
    }
    this.#protocol.handleTimeout(now);
    this.#reconnector.handleTimeout(this.#jitter(), now);
    this.work();
  }

  #clearTimer(): void {
    if (this.#timer) this.#environment.timers.clear(this.#timer.id);
    this.#timer = undefined;
  }

  /** Closes the socket under way, from now on a stranger. */
  #letGo(code: number, reason: string): void {
    const socket = this.#dial?.socket;
    this.#dial = undefined;
    try {
      socket?.close(code, reason);
    } catch {
      // It is given up in any case.
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

function stateOf(status: Status, reason: string, now: number): ConnectionState {
  switch (status.name) {
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

/** What a failed request for a ticket means for the dial: a refusal says more than a failure. */
function closedBy(cause: unknown): Closed {
  const closed = (cause as { closed?: Closed } | undefined)?.closed;
  return closed?.kind === "refused" ? closed : { kind: "failed" };
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
