/** Decides when to dial. No other code opens or reopens connections. */
import { type Backoff, delay } from "../backoff.js";
import { classify, type ConnectionEnd, type PermanentFailure } from "../close.js";
import { DIAL_WITHIN, GOOD_AFTER, HIDDEN_EVERY } from "../config.js";

/** The connection's state as the user sees it. */
export type Status =
  | { readonly name: "connecting" }
  | { readonly name: "open" }
  /** The connection was lost. Attempt number `attempt` starts at `at`; if that is past, it is under way. */
  | { readonly name: "reconnecting"; readonly attempt: number; readonly at: number }
  | { readonly name: "offline" }
  | { readonly name: "ended" }
  | { readonly name: "needs-login" }
  | { readonly name: "gone"; readonly why: PermanentFailure };

/** What the driver must do. */
export type Action =
  /** Dial, and pass `generation` with all events of this dial. `freshTicket` if the last ticket was refused. */
  | { readonly kind: "dial"; readonly generation: number; readonly freshTicket: boolean }
  /** Close this dial or its connection. Its later events are ignored. */
  | { readonly kind: "drop"; readonly generation: number }
  /** Show the new status. */
  | { readonly kind: "show"; readonly status: Status };

type Phase =
  | { readonly name: "idle" }
  | { readonly name: "dialling"; readonly since: number }
  | { readonly name: "opened" }
  | { readonly name: "attached"; readonly since: number }
  | { readonly name: "waiting"; readonly at: number };

const IDLE: Phase = { name: "idle" };

/** The state machine that dials, waits and gives up. */
export class Reconnector {
  readonly #backoff: Backoff;
  #status: Status = { name: "connecting" };
  #generation = 0;
  #phase: Phase = IDLE;
  /** Failures since the last good connection (see {@link GOOD_AFTER}) or wake. */
  #failures = 0;
  #freshTicket = false;
  /** The server demands no dial before this time, not even on a wake. */
  #notBefore = 0;
  #hidden = false;
  #actions: Action[] = [];

  constructor(backoff: Backoff) {
    this.#backoff = backoff;
  }

  get status(): Status {
    return this.#status;
  }

  /** Makes the first dial. */
  start(now: number): void {
    if (this.#generation === 0 && this.#phase.name === "idle") this.#dial(now);
  }

  /** The transport of this dial is open. */
  handleOpened(generation: number): void {
    if (generation === this.#generation && this.#phase.name === "dialling") this.#phase = { name: "opened" };
  }

  /** The server accepted the connection. */
  handleAttached(generation: number, now: number): void {
    const early = this.#phase.name === "dialling" || this.#phase.name === "opened";
    if (generation !== this.#generation || !early) return;
    this.#phase = { name: "attached", since: now };
    this.#show({ name: "open" });
  }

  /** A dial failed, or its connection ended. `jitter` is in [-1, 1]. */
  handleClosed(generation: number, closed: ConnectionEnd, jitter: number, now: number): void {
    if (generation !== this.#generation || !this.#isLive()) return;
    // A server that accepts and soon closes again does not reset the count.
    if (this.#phase.name === "attached" && now - this.#phase.since >= GOOD_AFTER) this.#failures = 0;
    this.#phase = IDLE;
    const outcome = classify(closed);
    switch (outcome.class) {
      case "ended":
      case "superseded":
        return this.#show({ name: "ended" });
      case "permanent":
        return this.#show({ name: "gone", why: outcome.kind });
      case "needs_login":
        return this.#show({ name: "needs-login" });
      case "fetch_ticket":
        this.#freshTicket = true;
        return this.#retry(0, jitter, now);
      case "transient":
        this.#retry(outcome.notBefore ?? 0, jitter, now);
        // A proxy does not know when the server is back; the user may, so a wake need not wait.
        if (closed.kind === "refused" && !closed.fromGateway) this.#notBefore = now;
        return;
    }
  }

  #retry(notBefore: number, jitter: number, now: number): void {
    const backoff = delay(this.#backoff, this.#failures, jitter);
    if (backoff === undefined) return this.#show({ name: "offline" });
    this.#failures += 1;
    this.#notBefore = now + notBefore;
    const wait = this.#hidden ? Math.max(backoff, HIDDEN_EVERY) : backoff;
    this.#wait(Math.max(now + wait, this.#notBefore));
  }

  #wait(at: number): void {
    this.#phase = { name: "waiting", at };
    this.#show({ name: "reconnecting", attempt: Math.max(this.#failures, 1), at });
  }

  /** The page is hidden: at most one dial a minute, until a wake. */
  handleHidden(now: number): void {
    this.#hidden = true;
    if (this.#phase.name === "waiting") this.#wait(Math.max(this.#phase.at, now + HIDDEN_EVERY));
  }

  /**
   * The page is online, visible or resumed, or the user wants to retry: resets the count of failures and dials at once, unless
   * a dial is under way or the server demanded a wait. An open connection is left alone; the link probes it.
   */
  handleWake(now: number): void {
    this.#hidden = false;
    const over = this.#isOver() || this.#status.name === "needs-login";
    if (this.#generation === 0 || over) return;
    this.#failures = 0;
    if (this.#phase.name === "idle" || this.#phase.name === "waiting") {
      this.#wait(Math.max(this.#notBefore, now));
      this.handleTimeout(0, now);
    }
  }

  /** Drops any dial or connection and dials at once. For use after a new login. */
  redial(now: number): void {
    if (this.#isOver()) return;
    if (this.#isLive()) this.#drop();
    this.#failures = 0;
    this.#phase = IDLE;
    this.#show({ name: "reconnecting", attempt: 1, at: now });
    this.#dial(now);
  }

  /** The session exited, or the user disposed of the connection. */
  handleEnded(): void {
    if (this.#isLive()) this.#drop();
    this.#phase = IDLE;
    if (this.#status.name !== "gone") this.#show({ name: "ended" });
  }

  /** To be called at the time that {@link pollTimeout} returns. `jitter` is in [-1, 1]. */
  handleTimeout(jitter: number, now: number): void {
    if (this.#phase.name === "waiting" && this.#phase.at <= now) {
      this.#dial(now);
    } else if (this.#phase.name === "dialling" && this.#phase.since + DIAL_WITHIN <= now) {
      this.#drop();
      this.handleClosed(this.#generation, { kind: "failed" }, jitter, now);
    }
  }

  /** When to call {@link handleTimeout}. */
  pollTimeout(): number | undefined {
    if (this.#phase.name === "waiting") return this.#phase.at;
    return this.#phase.name === "dialling" ? this.#phase.since + DIAL_WITHIN : undefined;
  }

  pollAction(): Action | undefined {
    return this.#actions.shift();
  }

  /** Whether a dial or a connection exists. */
  #isLive(): boolean {
    return this.#phase.name === "dialling" || this.#phase.name === "opened" || this.#phase.name === "attached";
  }

  #isOver(): boolean {
    return this.#status.name === "ended" || this.#status.name === "gone";
  }

  #dial(now: number): void {
    this.#generation += 1;
    this.#phase = { name: "dialling", since: now };
    this.#actions.push({ kind: "dial", generation: this.#generation, freshTicket: this.#freshTicket });
    this.#freshTicket = false;
  }

  #drop(): void {
    this.#actions.push({ kind: "drop", generation: this.#generation });
  }

  #show(status: Status): void {
    if (JSON.stringify(this.#status) === JSON.stringify(status)) return;
    this.#status = status;
    this.#actions.push({ kind: "show", status });
  }
}
