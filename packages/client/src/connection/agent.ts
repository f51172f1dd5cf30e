/** A conversation with an agent: its latest events, older ones on demand, and its state, kept up to date across reconnects. */
import type { Api } from "../api/api.js";
import type { EventPage } from "../api/bodies.js";
import { Conversation, type ConversationPage, readPage } from "../core/agent/conversation.js";
import type { AgentRecord, UnreadRecord } from "../core/agent/event.js";
import { type Backoff, BROWSER } from "../core/backoff.js";
import { WATCHES } from "../core/config.js";
import type { ConversationState, Epoch, SessionId } from "../core/wire.js";
import { safely } from "./callback.js";
import type { Environment } from "./environment.js";
import type { EventsConnection, Watch, WatchAnswer } from "./events.js";
import { PageRequest, type PageProblem } from "./page_request.js";
import type { ConnectionError, ConnectionState } from "./state.js";

/** Callbacks, in the order in which they must be applied to what is shown. All of them are optional. */
export interface AgentCallbacks {
  /**
   * Called once for each change of state. `open`: everything that happens arrives. `gone`: the session was forgotten, is no
   * agent session, belongs to another machine than the gateway's, or may not be read.
   */
  state?(state: ConnectionState): void;
  /** The latest events of the conversation, in place of all that was shown before. `conversation` follows. */
  reset?(page: ConversationPage): void;
  /** Events that come before all others. The result of `older()`. */
  older?(page: ConversationPage): void;
  /** Events that come after all others: each once, and in order; often one at a time. */
  events?(records: readonly AgentRecord[]): void;
  /** The state of the conversation changed. It is a new object; what did not change in it is the same as before. */
  conversation?(state: ConversationState): void;
  /** An error to log or show. */
  error?(error: ConnectionError): void;
}

export interface AgentOptions {
  /** `browserEnvironment()` in a page, `plainEnvironment()` elsewhere. */
  readonly environment: Environment;
  readonly api: Pick<Api, "history">;
  /** The stream that watches the session. Many conversations share one; at most 64 can be open on it. */
  readonly events: EventsConnection;
  /** The session's id. */
  readonly session: SessionId;
  readonly on: AgentCallbacks;
  /** How many events a page has at most; 200 by default. */
  readonly limit?: number;
  /** When to repeat a request for history; `BROWSER` by default. */
  readonly backoff?: Backoff;
}

/**
 * A conversation with an agent, over as many connections as it takes. The constructor reads its last page. It goes on when
 * the session ends, is repaired or starts again. A session has one such connection on an `EventsConnection`: another ends it.
 */
export class AgentConnection {
  readonly #options: AgentOptions;
  readonly #on: AgentCallbacks;
  readonly #release: (() => void)[];
  readonly #watch: Watch | undefined;
  #state: ConnectionState = { name: "connecting" };
  #conversation: Conversation | undefined;
  /** Whether the server has answered the watch on the current connection. */
  #answered = false;
  #wasOpen = false;
  #isStreamOpen: boolean;
  /** When the stream was last lost. */
  #streamLostAt = -Infinity;
  /** Consecutive answers `snapshot`. A server that never resumes must not be asked again and again without a pause. */
  #snapshots = 0;
  /** The requests for the last page, for an older one, and for whether the session still exists. */
  #loading: PageRequest | undefined;
  #older: { request: PageRequest; done: Promise<void>; finish: () => void } | undefined;
  #checking: PageRequest | undefined;
  /** The session may have been forgotten since the request under way was sent, so that is checked after it. */
  #recheck = false;
  /** Set once nothing more can come. */
  #end: ConnectionState | undefined;
  /** When states are reported: neither before the caller has the connection, nor after it was disposed of. */
  #reports: "later" | "now" | "never" = "later";

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#on = options.on;
    queueMicrotask(() => this.#beginReports());
    const { events, environment, session } = options;
    this.#isStreamOpen = events.state.name === "open";
    const check = (exists: boolean) => {
      if (!exists) this.#check();
      else this.#checkHost();
    };
    this.#release = [
      events.subscribe({
        state: ({ name }) => this.#handleStream(name === "open"),
        board: (sessions) => check(sessions.some(({ id }) => id === session)),
        session: () => this.#checkHost(),
        sessionGone: (id) => check(id !== session),
      }),
      environment.lifecycle.subscribe((signal) => {
        if (signal !== "hidden" && signal !== "frozen" && signal !== "offline") this.#wake();
      }),
    ];
    this.#watch = events.watch(session, {
      watched: (answer) => this.#handleAnswer(answer),
      record: (record) => this.#handleRecord(record),
      superseded: () => this.#finish({ name: "ended", reason: "the session was opened again" }),
    });
    if (this.#watch) {
      this.#checkHost();
      if (!this.#end) this.#load();
      return;
    }
    const reason = `at most ${WATCHES} conversations can be open at a time; close another one first`;
    this.#finish({ name: "gone", why: "other", reason });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The state of the conversation; `undefined` until the first page was read. */
  get conversation(): ConversationState | undefined {
    return this.#conversation?.state;
  }

  /** Whether there are older events than those that were read. */
  get hasOlder(): boolean {
    return this.#conversation?.hasOlder ?? false;
  }

  /**
   * Reads the page before the oldest event, and passes it to `on.older`. One is read at a time: while one is, a call returns
   * its promise. The promise resolves when the page was passed on; when it could not be read, as `on.error` was told, and can
   * be asked for again; or when it is not wanted any more because of a `reset` or the end of the connection.
   */
  older(): Promise<void> {
    const conversation = this.#conversation;
    if (this.#older) return this.#older.done;
    // While the last page is read again, what is shown is about to be replaced.
    if (this.#end || this.#loading || !conversation?.hasOlder) return Promise.resolve();
    let finish = () => {};
    const done = new Promise<void>((resolve) => (finish = resolve));
    const apply = (page: EventPage) => {
      const older = conversation.addOlder(page);
      this.#endOlder();
      this.#emit((on) => on.older?.(older));
    };
    const show = ({ name }: PageProblem) => {
      if (name === "offline" || name === "needs-login") this.#endOlder();
    };
    const request = this.#request({ before: conversation.start }, apply, { show });
    this.#older = { request, done, finish };
    request.start();
    return done;
  }

  /**
   * The caller has dropped all events before `seq`, to save memory: `older()` reads them again. A page that is being read is
   * not wanted any more.
   */
  forgetBefore(seq: number): void {
    this.#endOlder();
    this.#conversation?.forgetBefore(seq);
  }

  /**
   * Whether a description of the session, from the board or from `api.session()`, is newer than the events that were received.
   * One that is not must not be shown in place of `conversation`.
   */
  isNewer(description: { readonly epoch: Epoch; readonly offset: number }): boolean {
    return this.#conversation?.isNewer(description) ?? true;
  }

  /**
   * Repeats failed requests now, and those that hang. Call it when the user asks for it, or after a new login, beside
   * `events.retry()`.
   */
  retry(): void {
    for (const request of this.#requests) request?.retry();
  }

  /** Ends the watch and all requests, and removes every listener and timer. No callback is called afterwards. */
  dispose(): void {
    this.#reports = "never";
    if (this.#end) return;
    this.#state = { name: "ended", reason: "" };
    this.#stop(this.#state);
  }

  /** The page is awake. */
  #wake(): void {
    for (const request of this.#requests) request?.wake();
  }

  get #requests(): (PageRequest | undefined)[] {
    return [this.#loading, this.#older?.request, this.#checking];
  }

  /** Reads the last page, and then watches what follows. */
  #load(): void {
    this.#watch?.pause();
    this.#answered = false;
    this.#endOlder();
    this.#loading?.cancel();
    this.#loading = this.#request(
      {},
      (page) => {
        const conversation = new Conversation(page, this.#conversation);
        this.#loading = undefined;
        this.#conversation = conversation;
        this.#emit((on) => on.reset?.(readPage(page)));
        this.#emit((on) => on.conversation?.(conversation.state));
        if (this.#end) return;
        this.#watch?.start(conversation.cursor);
        this.#show();
        this.#checkAgain();
      },
      { failures: this.#snapshots, show: () => this.#show() },
    );
    this.#loading.start();
    this.#show();
  }

  #handleAnswer({ verdict }: WatchAnswer): void {
    // The events that follow do not continue those that were received.
    if (verdict === "snapshot") {
      this.#load();
      this.#snapshots += 1;
      return;
    }
    this.#snapshots = 0;
    this.#answered = this.#wasOpen = true;
    this.#show();
  }

  #handleRecord(unread: UnreadRecord): void {
    const conversation = this.#conversation;
    if (!conversation) return;
    const before = conversation.state;
    const record = conversation.add(unread);
    this.#emit((on) => on.events?.([record]));
    if (conversation.state !== before) this.#emit((on) => on.conversation?.(conversation.state));
  }

  /** The stream was opened or lost. */
  #handleStream(open: boolean): void {
    // The network works, and so does the login.
    if (open) for (const request of this.#requests) request?.handleStreamOpened(this.#streamLostAt);
    else if (this.#isStreamOpen) this.#streamLostAt = this.#options.environment.timers.now();
    this.#isStreamOpen = open;
    this.#answered = false;
    this.#show();
  }

  /** The board does not have the session: only history tells for certain whether it was forgotten. */
  #check(): void {
    this.#recheck = this.#loading !== undefined || this.#checking !== undefined;
    if (this.#recheck || this.#end) return;
    this.#checking = this.#request({ limit: 1 }, () => {
      this.#checking = undefined;
      this.#checkAgain();
    });
    this.#checking.start();
  }

  #checkAgain(): void {
    if (this.#recheck) this.#check();
  }

  /** The gateway does not answer the watch of a session of another machine. */
  #checkHost(): void {
    const host = this.#options.events.hostOf(this.#options.session);
    if (host === undefined) return;
    const reason = `the session belongs to the machine ${host}; open it there`;
    this.#finish({ name: "gone", why: "not_allowed", reason });
  }

  /** `show` is told of failures that are not the end of the connection. */
  #request(
    query: { before?: number; limit?: number },
    apply: (page: EventPage) => void,
    { failures = 0, show }: { failures?: number; show?: (problem: PageProblem) => void } = {},
  ): PageRequest {
    const { environment, api, session, limit, backoff = BROWSER } = this.#options;
    const page = { ...(limit === undefined ? {} : { limit }), ...query };
    return new PageRequest({
      environment,
      backoff,
      failures,
      fetch: (signal) => api.history(session, page, signal),
      apply,
      show: (problem) => (problem.name === "gone" ? this.#finish(problem) : show?.(problem)),
      report: (message, cause) => this.#emit((on) => on.error?.({ source: "history", session, message, cause })),
    });
  }

  #endOlder(): void {
    this.#older?.request.cancel();
    this.#older?.finish();
    this.#older = undefined;
  }

  /** Ends the connection for a reason of its own, and says so. */
  #finish(state: ConnectionState): void {
    if (this.#end) return;
    this.#stop(state);
    this.#show();
  }

  #stop(state: ConnectionState): void {
    this.#end = state;
    for (const release of this.#release) release();
    this.#watch?.end();
    this.#loading?.cancel();
    this.#checking?.cancel();
    this.#endOlder();
    this.#loading = this.#checking = undefined;
  }

  /** Calls a callback, unless the connection has ended. */
  #emit(call: (on: AgentCallbacks) => void): void {
    if (!this.#end) safely(() => call(this.#on));
  }

  /** Reports the state, if it changed. */
  #show(): void {
    const state = this.#end ?? this.#currentState();
    if (JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    if (isFinal(state) && !this.#end) this.#stop(state);
    this.#report();
  }

  #beginReports(): void {
    if (this.#reports === "never") return;
    this.#reports = "now";
    if (this.#state.name !== "connecting") this.#report();
  }

  #report(): void {
    if (this.#reports === "now") safely(() => this.#on.state?.(this.#state));
  }

  #currentState(): ConnectionState {
    const stream = this.#options.events.state;
    if (isFinal(stream)) return stream;
    // Events arrive whether or not an older page can be read.
    const problems: (ConnectionState | PageProblem | undefined)[] = [stream, this.#loading?.problem];
    // The worst of them.
    for (const name of ["needs-login", "offline", "reconnecting"] as const) {
      const problem = problems.find((state) => state?.name === name);
      if (problem) return problem;
    }
    if (stream.name === "open" && this.#answered) return stream;
    // Until everything that was missed has begun to arrive.
    return this.#wasOpen ? { name: "reconnecting", attempt: 1, delay: 0 } : { name: "connecting" };
  }
}

function isFinal(state: ConnectionState): boolean {
  return state.name === "ended" || state.name === "gone";
}
