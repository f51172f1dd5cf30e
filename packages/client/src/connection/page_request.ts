/** A request for a page of history, repeated until it succeeds or never can. */
import { ApiError } from "../api/error.js";
import type { EventPage } from "../api/bodies.js";
import { type Backoff, delay } from "../core/backoff.js";
import { classify, type ConnectionEnd } from "../core/close.js";
import { HIDDEN_EVERY, PROBE_WITHIN } from "../core/config.js";
import type { Environment } from "./environment.js";
import type { ConnectionState } from "./state.js";

/** Why there is no page yet: it is tried again, waits for a wake or a login, or will never come. */
export type PageProblem = Extract<ConnectionState, { name: "reconnecting" | "offline" | "needs-login" | "gone" }>;

export interface PageRequestOptions {
  readonly environment: Environment;
  readonly backoff: Backoff;
  /** Failures before this request: with any, the first attempt waits like one after a failure. */
  readonly failures: number;
  readonly fetch: (signal: AbortSignal) => Promise<EventPage>;
  /** Applies the page. If it throws, nothing was applied, and the page is requested again. */
  readonly apply: (page: EventPage) => void;
  /** An attempt failed, or another one has begun since. */
  readonly show: (problem: PageProblem) => void;
  readonly report: (message: string, cause: unknown) => void;
}

/** One page, requested again with backoff while it fails. {@link start} makes the first attempt. */
export class PageRequest {
  readonly #options: PageRequestOptions;
  #problem: PageProblem | undefined;
  /** The attempt that is under way. */
  #attempt: { readonly abort: AbortController; readonly since: number } | undefined;
  #timer: unknown;
  #failures: number;
  /** Why the last attempt failed. */
  #message = "";
  /** The server wants no attempt before this time, not even on a wake. */
  #notBefore = 0;
  #over = false;

  constructor(options: PageRequestOptions) {
    this.#options = options;
    this.#failures = options.failures;
  }

  start(): void {
    if (this.#failures > 0) this.#retryLater(0);
    else this.#try();
  }

  get problem(): PageProblem | undefined {
    return this.#problem;
  }

  /**
   * Tries at once, unless the server wants to wait: the user asked for it, or has logged in. An attempt that is under way may be
   * one of a dead network, which would fail only after minutes. So it is repeated, unless it has just begun.
   */
  retry(): void {
    this.#retryUnless((begun) => this.#options.environment.timers.now() - begun <= PROBE_WITHIN);
  }

  /**
   * The event stream was opened, so the network works. Tries at once, unless the server wants to wait. An attempt that began before
   * the stream was lost is repeated; another one may only be slow, and goes on.
   */
  handleStreamOpened(lostAt: number): void {
    this.#retryUnless((begun) => begun >= lostAt);
  }

  /** Tries at once, unless an attempt is under way that may go on, as `goesOn` says given when it began. */
  #retryUnless(goesOn: (begun: number) => boolean): void {
    if (this.#over || (this.#attempt && goesOn(this.#attempt.since))) return;
    const now = this.#options.environment.timers.now();
    this.#abort();
    this.#failures = 0;
    if (this.#notBefore > now) return this.#wait(this.#notBefore - now);
    this.#try();
  }

  /** The page is awake: like {@link retry}, but nothing is tried before the user logs in. */
  wake(): void {
    if (this.#problem?.name !== "needs-login") this.retry();
  }

  /** Gives up. Nothing is called afterwards. */
  cancel(): void {
    this.#over = true;
    this.#clearTimer();
    this.#abort();
  }

  #abort(): void {
    this.#attempt?.abort.abort();
    this.#attempt = undefined;
  }

  #try(): void {
    this.#clearTimer();
    const abort = new AbortController();
    const attempt = { abort, since: this.#options.environment.timers.now() };
    this.#attempt = attempt;
    // A page that arrives after the attempt was given up is dropped.
    const ifCurrent = (then: () => void) => {
      if (this.#attempt !== attempt) return;
      this.#attempt = undefined;
      then();
    };
    const fetch = async () => this.#options.fetch(abort.signal);
    fetch().then(
      (page) => ifCurrent(() => this.#apply(page)),
      (error: unknown) => ifCurrent(() => this.#handleError(error)),
    );
    if (this.#problem) this.#show({ name: "reconnecting", attempt: Math.max(this.#failures, 1), delay: 0 });
  }

  #apply(page: EventPage): void {
    try {
      this.#over = true;
      this.#options.apply(page);
    } catch (error) {
      this.#over = false;
      this.#handleError(error);
    }
  }

  #handleError(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#message = message;
    this.#options.report(message, error);
    // The callback may have given up, or tried again.
    if (this.#over || this.#attempt) return;
    const closed: ConnectionEnd = error instanceof ApiError ? error.closed : { kind: "failed" };
    const outcome = classify(closed);
    switch (outcome.class) {
      case "permanent":
        return this.#finish({ name: "gone", why: outcome.kind, reason: message });
      case "ended":
      case "superseded":
        return this.#finish({ name: "gone", why: "other", reason: message });
      case "needs_login":
        return this.#show({ name: "needs-login", reason: message });
      case "fetch_ticket":
      case "transient":
        this.#retryLater(outcome.class === "transient" ? (outcome.notBefore ?? 0) : 0);
        // A proxy does not know when the server is back; the user may, so a wake need not wait.
        if (closed.kind === "refused" && !closed.fromGateway) this.#notBefore = 0;
    }
  }

  #retryLater(notBefore: number): void {
    const { environment, backoff } = this.#options;
    this.#notBefore = environment.timers.now() + notBefore;
    const wait = delay(backoff, this.#failures, environment.random() * 2 - 1);
    if (wait === undefined) return this.#show({ name: "offline", reason: this.#message });
    this.#failures += 1;
    this.#wait(Math.max(wait, notBefore, environment.lifecycle.hidden ? HIDDEN_EVERY : 0));
  }

  #wait(delay: number): void {
    this.#clearTimer();
    this.#timer = this.#options.environment.timers.set(() => {
      this.#timer = undefined;
      this.#try();
    }, Math.ceil(delay));
    this.#show({ name: "reconnecting", attempt: Math.max(this.#failures, 1), delay });
  }

  #finish(problem: PageProblem): void {
    this.#over = true;
    this.#show(problem);
  }

  #show(problem: PageProblem): void {
    this.#problem = problem;
    this.#options.show(problem);
  }

  #clearTimer(): void {
    if (this.#timer !== undefined) this.#options.environment.timers.clear(this.#timer);
    this.#timer = undefined;
  }
}
