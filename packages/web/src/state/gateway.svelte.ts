/** The gateway behind this page: the login, and the board as the event stream updates it. */
import {
  Api,
  ApiError,
  type ConnectionState,
  EventsConnection,
  newClientId,
  type SessionInfo,
  type TargetBuilder,
} from "@bowline/client";
import { browserEnvironment } from "@bowline/client/browser";
import { SvelteMap } from "svelte/reactivity";
import {
  type AttentionReason,
  attentionReason,
  parseViewRecords,
  recordBoard,
  recordUpdate,
  recordView,
  type ViewRecords,
} from "./attention.ts";
import { backoff, deviceStore, storageKey } from "./device.svelte.ts";
import { showNotice } from "./notices.svelte.ts";
import { checkForUpdate } from "./updates.ts";

// Several gateways may share an origin, each with its own login and sessions.
const { pathname } = new URL("./", document.baseURI);
const LOGIN_KEY = storageKey("key", pathname);
const RECORDS_KEY = storageKey("seen", pathname);

/** Whether this browser is logged in; `unknown` until the gateway has answered. */
export type LoginState = "unknown" | "in" | "out";

class Gateway {
  /** The API is served next to the app. */
  readonly api = new Api({ base: new URL("./", document.baseURI).href, auth: { kind: "none" } });
  login: LoginState = $state("unknown");
  /** Why the login failed or ended; empty if there is nothing to report. */
  loginProblem = $state("");
  /** The state of the event stream. */
  connection: ConnectionState = $state.raw({ name: "connecting" });
  /** When the event stream reconnects, in `Date.now()` milliseconds; 0 if it is not waiting to. */
  retryAt = $state(0);
  /** Whether the board was received at least once. */
  boardLoaded = $state(false);
  version = $state("");
  readonly sessions = new SvelteMap<string, SessionInfo>();
  viewRecords: ViewRecords = $state.raw(parseViewRecords(deviceStore.get(RECORDS_KEY)));
  /** The session whose page is open. */
  viewedId: string | undefined = $state();
  /** Called after a login, so that connections that were refused reconnect. */
  readonly onLogin = new Set<() => void>();
  /** Called when a session that the user is not viewing starts to need attention. */
  onAttention: (session: SessionInfo, reason: AttentionReason) => void = () => {};
  /** The event stream, which conversations are watched over; another one after a logout, or when it was refused for good. */
  events: EventsConnection | undefined = $state.raw();
  /** Ids of unreadable sessions that were already reported. */
  readonly #reportedUnreadable = new Set<string>();

  /**
   * Connects with the code of a login link, the key of an earlier login, or neither (behind a proxy that
   * authenticates).
   */
  async start(code: string | undefined): Promise<void> {
    const key = deviceStore.get(LOGIN_KEY);
    if (key !== undefined) this.api.auth = { kind: "browser", key };
    addEventListener("storage", (event) => {
      if (event.key === LOGIN_KEY && event.newValue !== null) this.#adoptKey(event.newValue);
    });
    if (code !== undefined) return this.logIn(code);
    if (key === undefined) {
      try {
        await this.api.sessions();
      } catch (error) {
        // Only the gateway knows whether a login is needed. While it is unreachable, the event stream retries.
        if (error instanceof ApiError && error.fromGateway && error.status === 401) return this.loggedOut("");
        if (error instanceof ApiError && error.fromGateway && error.status === 403)
          return this.loggedOut(error.message);
      }
    }
    this.#handleLogin();
  }

  /** Logs in with a one-time code. */
  async logIn(code: string): Promise<void> {
    try {
      const { key } = await this.api.login(code);
      deviceStore.set(LOGIN_KEY, key);
      this.#handleLogin();
    } catch (error) {
      // A link that was opened twice does not end a working login.
      if (await this.#isAuthorized()) return this.#handleLogin();
      this.loggedOut(loginErrorMessage(error));
    }
  }

  /** Shows the login page, with a reason that may be empty. */
  loggedOut(problem: string): void {
    this.login = "out";
    this.loginProblem = problem;
  }

  /**
   * Wraps a connection's target to remember the login key it dialled with. Call `refused` when that login is
   * refused.
   */
  trackLogin(target: TargetBuilder): { readonly target: TargetBuilder; readonly refused: () => void } {
    let usedKey = "";
    return {
      target: (dial) => {
        usedKey = this.#key;
        return target(dial);
      },
      refused: () => this.#handleRefused(usedKey),
    };
  }

  /** Call this when a request is refused because it needs a login. */
  requestRefused(): void {
    this.#handleRefused(this.#key);
  }

  /** Revokes the login at the gateway, and removes it from this browser. */
  async logOut(): Promise<void> {
    try {
      await this.api.logout();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) throw error;
    }
    deviceStore.remove(LOGIN_KEY);
    this.#close();
    this.sessions.clear();
    this.boardLoaded = false;
    this.loggedOut("");
  }

  /** Reconnects the event stream now. One that was refused permanently is replaced. */
  retry(): void {
    if (this.connection.name === "gone" || this.connection.name === "ended") this.#close();
    if (this.events) this.events.retry();
    else this.#open();
  }

  /** Stores a session that this page changed. The event stream reports the same change later. */
  put(session: SessionInfo): void {
    this.sessions.set(session.id, session);
  }

  /** Records that the user is viewing a session, so that it no longer needs attention. */
  markViewed(session: SessionInfo): void {
    const now = recordView(session);
    const before = this.viewRecords[session.id];
    if (before?.call === now.call && before?.epoch === now.epoch && before?.ended === now.ended) return;
    this.#saveRecords({ ...this.viewRecords, [session.id]: now });
  }

  get #key(): string {
    const { auth } = this.api;
    return auth.kind === "browser" ? auth.key : "";
  }

  /**
   * Handles a refused login key. All tabs share one cookie, so after a login in another tab only the key that
   * it stored works.
   */
  #handleRefused(usedKey: string): void {
    const stored = deviceStore.get(LOGIN_KEY);
    if (stored === undefined || stored === usedKey)
      return this.loggedOut(stored === undefined ? "" : "Your login was revoked or has expired.");
    this.api.auth = { kind: "browser", key: stored };
    this.#handleLogin();
  }

  /** Uses the key of a login in another tab. */
  #adoptKey(key: string): void {
    this.api.auth = { kind: "browser", key };
    if (this.login === "out") this.#handleLogin();
  }

  #handleLogin(): void {
    // Behind a proxy that authenticates, no key is needed.
    if (this.api.auth.kind === "none") this.api.auth = { kind: "browser", key: "" };
    this.login = "in";
    this.loginProblem = "";
    this.retry();
    for (const reconnect of this.onLogin) reconnect();
  }

  #close(): void {
    this.events?.dispose();
    this.events = undefined;
    this.connection = { name: "connecting" };
    this.retryAt = 0;
  }

  #open(): void {
    const { target, refused } = this.trackLogin(this.api.eventsTarget(newClientId()));
    this.events = new EventsConnection({
      environment: browserEnvironment(),
      target,
      backoff: backoff(),
      on: {
        state: (state) => {
          this.connection = state;
          this.retryAt = state.name === "reconnecting" ? Date.now() + state.delay : 0;
          if (state.name === "needs-login") refused();
        },
        welcome: ({ version }) => {
          if (this.version) void checkForUpdate();
          this.version = version;
        },
        board: (sessions) => {
          const gone = new Set(this.sessions.keys());
          for (const session of sessions) {
            gone.delete(session.id);
            this.sessions.set(session.id, session);
          }
          for (const id of gone) this.sessions.delete(id);
          this.boardLoaded = true;
          this.#saveRecords(recordBoard(this.viewRecords, sessions));
        },
        session: (session) => this.#changed(session),
        sessionGone: (id) => this.sessions.delete(id),
        error: ({ source, session, message, cause }) => {
          if (source === "session") this.#unreadable(session);
          else logConnectionError("event stream", message, cause);
        },
      },
    });
  }

  /**
   * Reports a session that this version cannot read. Each connection receives the whole board, but a session
   * is reported once.
   */
  #unreadable(id = "with an unknown ID"): void {
    // The stored description is out of date.
    this.sessions.delete(id);
    if (this.#reportedUnreadable.has(id)) return;
    this.#reportedUnreadable.add(id);
    showNotice("Cannot show a session", { body: `This version of the app cannot read session ${id}.` });
  }

  #changed(session: SessionInfo): void {
    const before = this.sessions.get(session.id);
    this.sessions.set(session.id, session);
    const record = recordUpdate(this.viewRecords[session.id], session);
    if (record !== this.viewRecords[session.id]) this.#saveRecords({ ...this.viewRecords, [session.id]: record });
    if (this.viewedId === session.id && document.visibilityState === "visible") return this.markViewed(session);
    const reason = attentionReason(session, record);
    const isNew = !before || before.call?.at !== session.call?.at || before.state !== session.state;
    if (reason && isNew) this.onAttention(session, reason);
  }

  #saveRecords(records: ViewRecords): void {
    this.viewRecords = records;
    deviceStore.set(RECORDS_KEY, JSON.stringify(records));
  }

  async #isAuthorized(): Promise<boolean> {
    try {
      await this.api.sessions();
      return true;
    } catch {
      return false;
    }
  }
}

/** Logs an error of a connection. What it means for the connection is shown with its state. */
export function logConnectionError(connection: string, message: string, cause: unknown): void {
  console.warn(`${connection}: ${message}`, ...(cause === undefined ? [] : [cause]));
}

function loginErrorMessage(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (!error.fromGateway) return "Cannot reach the gateway. Check that it is running.";
  if (error.code === "too_many") return "Too many login attempts. Wait a minute, then try again.";
  return "This login code is invalid, expired or already used. Run bowline login-link to get a new one.";
}

export const gateway = new Gateway();

/** The message to show for a failed request. If the login was refused, this also leads to the login page. */
export function errorMessage(error: unknown): string {
  if (error instanceof ApiError && error.fromGateway && error.status === 401) gateway.requestRefused();
  return error instanceof Error ? error.message : String(error);
}
