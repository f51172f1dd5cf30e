/** The gateway as the app sees it: the login, and the board kept true by the event stream. */
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
import { deviceStore, keptAs } from "./device.svelte.ts";
import { notice } from "./notices.svelte.ts";
import { look, meet, type Need, needOf, readSeen, receive, type SeenBoard } from "./seen.ts";
import { checkShell } from "./shell.ts";

/** Several gateways may be below one origin, each with its own login and sessions. */
const { pathname } = new URL("./", document.baseURI);
const KEY = keptAs("key", pathname);
const SEEN = keptAs("seen", pathname);

/** Whether somebody is logged in: not known yet, yes, or no. */
export type Login = "unknown" | "in" | "out";

/** The gateway behind this page. */
class Gateway {
  /** Where the app is, so is the API. */
  readonly api = new Api({ base: new URL("./", document.baseURI).href, auth: { kind: "none" } });
  login: Login = $state("unknown");
  /** Why there is no login, when there was one before or one was tried. */
  why = $state("");
  feed: ConnectionState = $state.raw({ name: "connecting" });
  /** When the event stream's next dial is due, by the page's clock; 0 for none. */
  due = $state(0);
  /** The board has been received at least once. */
  known = $state(false);
  version = $state("");
  readonly sessions = new SvelteMap<string, SessionInfo>();
  seen: SeenBoard = $state.raw(readSeen(deviceStore.get(SEEN)));
  /** The session that is looked at. */
  viewed: string | undefined = $state();
  /** Called after a login: connections that wait for one go on. */
  readonly onLogin = new Set<() => void>();
  /** Called when a session that is not in view begins to need the user. */
  onNeed: (session: SessionInfo, need: Need) => void = () => {};
  #events: EventsConnection | undefined;
  /** Sessions that cannot be read, by id. */
  readonly #left = new Set<string>();

  /** Begins: with the login link's code, with the key of an earlier login, or without either behind a proxy that logs in. */
  async start(code: string | undefined): Promise<void> {
    const key = deviceStore.get(KEY);
    if (key !== undefined) this.api.auth = { kind: "browser", key };
    addEventListener("storage", (event) => {
      if (event.key === KEY && event.newValue !== null) this.#take(event.newValue);
    });
    if (code !== undefined) return this.logIn(code);
    if (key === undefined) {
      try {
        await this.api.sessions();
      } catch (error) {
        // Whether a login is needed, nobody but the gateway can say: while it is away, the event stream asks until it is back.
        if (error instanceof ApiError && error.ours && error.status === 401) return this.loggedOut("");
        if (error instanceof ApiError && error.ours && error.status === 403) return this.loggedOut(error.message);
      }
    }
    this.#enter();
  }

  /** Logs in by a one-time code. */
  async logIn(code: string): Promise<void> {
    try {
      const { key } = await this.api.login(code);
      deviceStore.set(KEY, key);
      this.#enter();
    } catch (error) {
      // A link that was opened twice is no reason to leave a login that works.
      if (await this.#works()) return this.#enter();
      this.loggedOut(loginWords(error));
    }
  }

  /** The login is no more; `why` in the words of whoever says so. */
  loggedOut(why: string): void {
    this.login = "out";
    this.why = why;
  }

  /** Where a connection dials, and whom it tells when its login is refused. */
  keyed(target: TargetBuilder): { readonly target: TargetBuilder; readonly refused: () => void } {
    let used = "";
    return {
      target: (dial) => {
        used = this.#key;
        return target(dial);
      },
      refused: () => this.#refused(used),
    };
  }

  /** A request was refused for want of a login. */
  requestRefused(): void {
    this.#refused(this.#key);
  }

  /** Leaves, here and there. */
  async logOut(): Promise<void> {
    try {
      await this.api.logout();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) throw error;
    }
    deviceStore.remove(KEY);
    this.#close();
    this.sessions.clear();
    this.known = false;
    this.loggedOut("");
  }

  /** Tries the event stream again now; one that was refused for good is made anew. */
  retry(): void {
    if (this.feed.name === "gone" || this.feed.name === "ended") this.#close();
    if (this.#events) this.#events.retry();
    else this.#open();
  }

  /** A session changed by what was done here; the stream says the same a little later. */
  put(session: SessionInfo): void {
    this.sessions.set(session.id, session);
  }

  /** Somebody looks at this session: it needs nobody any more. */
  lookAt(session: SessionInfo): void {
    const now = look(session);
    const before = this.seen[session.id];
    if (before?.call === now.call && before?.epoch === now.epoch && before?.ended === now.ended) return;
    this.#keepSeen({ ...this.seen, [session.id]: now });
  }

  get #key(): string {
    const { auth } = this.api;
    return auth.kind === "browser" ? auth.key : "";
  }

  /** Whoever came with this key is not logged in. All tabs share one cookie: after a login in another, its key goes with it. */
  #refused(used: string): void {
    const kept = deviceStore.get(KEY);
    if (kept === undefined || kept === used)
      return this.loggedOut(kept === undefined ? "" : "The login was revoked or has expired.");
    this.api.auth = { kind: "browser", key: kept };
    this.#enter();
  }

  /** Another tab has logged in. */
  #take(key: string): void {
    this.api.auth = { kind: "browser", key };
    if (this.login === "out") this.#enter();
  }

  #enter(): void {
    // Behind a proxy that logs in, nobody needs a key.
    if (this.api.auth.kind === "none") this.api.auth = { kind: "browser", key: "" };
    this.login = "in";
    this.why = "";
    this.retry();
    for (const go of this.onLogin) go();
  }

  #close(): void {
    this.#events?.dispose();
    this.#events = undefined;
    this.feed = { name: "connecting" };
    this.due = 0;
  }

  #open(): void {
    const { target, refused } = this.keyed(this.api.eventsTarget(newClientId()));
    this.#events = new EventsConnection({
      environment: browserEnvironment(),
      target,
      on: {
        state: (state) => {
          this.feed = state;
          this.due = state.name === "reconnecting" ? Date.now() + state.delay : 0;
          if (state.name === "needs-login") refused();
        },
        welcome: ({ version }) => {
          if (this.version) void checkShell();
          this.version = version;
        },
        board: (sessions) => {
          const gone = new Set(this.sessions.keys());
          for (const session of sessions) {
            gone.delete(session.id);
            this.sessions.set(session.id, session);
          }
          for (const id of gone) this.sessions.delete(id);
          this.known = true;
          this.#keepSeen(receive(this.seen, sessions));
        },
        session: (session) => this.#changed(session),
        sessionGone: (id) => this.sessions.delete(id),
        error: ({ source, session }) => {
          if (source === "session") this.#unreadable(session);
        },
      },
    });
  }

  /** The board comes anew with each connection; what it lacks is told once. */
  #unreadable(id = "of unknown id"): void {
    // What was known of it is no longer true.
    this.sessions.delete(id);
    if (this.#left.has(id)) return;
    this.#left.add(id);
    notice("A session is not on the board", { body: `This version of the app cannot read session ${id}.` });
  }

  #changed(session: SessionInfo): void {
    const before = this.sessions.get(session.id);
    this.sessions.set(session.id, session);
    const seen = meet(this.seen[session.id], session);
    if (seen !== this.seen[session.id]) this.#keepSeen({ ...this.seen, [session.id]: seen });
    if (this.viewed === session.id && document.visibilityState === "visible") return this.lookAt(session);
    const need = needOf(session, seen);
    const fresh = !before || before.call?.at !== session.call?.at || before.state !== session.state;
    if (need && fresh) this.onNeed(session, need);
  }

  #keepSeen(seen: SeenBoard): void {
    this.seen = seen;
    deviceStore.set(SEEN, JSON.stringify(seen));
  }

  async #works(): Promise<boolean> {
    try {
      await this.api.sessions();
      return true;
    } catch {
      return false;
    }
  }
}

function loginWords(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (!error.ours) return "The gateway cannot be reached. Is it running?";
  if (error.code === "too_many") return "Too many attempts. Wait a minute, then try again.";
  return "This code was used, has expired, or is wrong. A code works once, for ten minutes.";
}

/** The gateway. */
export const gateway = new Gateway();

/** An error in words for people. A login that is no more is noticed here, too. */
export function errorWords(error: unknown): string {
  if (error instanceof ApiError && error.ours && error.status === 401) gateway.requestRefused();
  return error instanceof Error ? error.message : String(error);
}
