/**
 * Sends commands until each is settled, whatever event streams do. The queue decides when; this class makes the requests, runs the
 * timer, and keeps the entries in a storage.
 */
import type { Api } from "../api/api.js";
import type { EventRecord } from "../api/bodies.js";
import { LATE } from "../core/config.js";
import { newClientId } from "../core/ids.js";
import type { Command, PostEntry } from "../core/post/entry.js";
import type { SendError } from "../core/post/item.js";
import { type PostAction, PostQueue, type StoredEntry } from "../core/post/queue.js";
import type { PostResponse } from "../core/post/response.js";
import { toStored } from "../core/post/stored.js";
import { attempt, count, object, oneOf, optional, text } from "../core/shape.js";
import type { SessionId } from "../core/wire.js";
import { safely } from "./callback.js";
import type { Environment, LifecycleSignal } from "./environment.js";

/** The longest delay that `setTimeout` supports. A longer wait takes several timers. */
const MAX_DELAY = 2 ** 31 - 1;

/** Where entries are kept over reloads. Any method may throw: the entry is then in memory only. */
export interface PostStorage {
  /** All entries, also those of other tabs. */
  load(): StoredEntry[];
  save(id: string, stored: string): void;
  remove(id: string): void;
  has(id: string): boolean;
  /**
   * Calls `removed` with the id of each entry that another tab removes, until the returned function is called; with `undefined` when
   * the user has emptied the whole storage.
   */
  subscribe(removed: (id: string | undefined) => void): () => void;
}

/** They are called after the change, and never inside the constructor of {@link Post}. */
export interface PostCallbacks {
  /** An entry is new, or its state has changed. */
  entry?(entry: PostEntry): void;
  /** An entry has left the list: it was discarded or dismissed, or another tab settled it. */
  removed?(id: string): void;
  /** All entries wait until {@link Post.handleLogin}. */
  needsLogin?(): void;
  /**
   * Stored entries that exceed the limits when the page is loaded: they stay stored, and are taken over when there is room. Until then,
   * `send` refuses prompts that would go before them: `session_full`.
   */
  leftOut?(ids: readonly string[]): void;
  /** An entry could not be stored: it is lost if the page is closed before it is delivered. */
  memoryOnly?(id: string): void;
}

export interface PostOptions {
  readonly api: Pick<Api, "postCommand" | "restart" | "isLoopback">;
  readonly environment: Pick<Environment, "timers" | "random" | "lifecycle">;
  /** Without one, entries are in memory only. */
  readonly storage?: PostStorage;
  /** Milliseconds since 1970; `Date.now` by default. */
  readonly wallClock?: () => number;
  readonly on?: PostCallbacks;
}

/** The events that record a command. */
const recorded = object<{ type: string; command: string; run?: string }>({
  type: oneOf("prompt", "approval_resolved", "abort_requested", "steered", "set"),
  command: text,
  run: optional(text),
});

/**
 * What `send` returns: the id of the new entry, or why there is none. The user's text must then stay where it was typed. After
 * `dispose`, every command is `invalid`.
 */
export type SendResult = { readonly ok: true; readonly id: string } | { readonly ok: false; readonly why: SendError };

/** Sends commands to agent sessions, each once and in order. A page has one. */
export class Post {
  readonly #options: PostOptions;
  readonly #queue = new PostQueue();
  /** By the number of the request. */
  readonly #requests = new Map<number, AbortController>();
  readonly #restarts = new Map<string, { readonly abort: AbortController; readonly done: Promise<boolean> }>();
  /** The ids of the entries that this tab has stored or found in the storage. */
  readonly #stored = new Set<string>();
  /** The ids of stored entries that did not fit into the queue. */
  #leftOut: ReadonlySet<string> = new Set();
  readonly #notices: (() => void)[] = [];
  #notifying = false;
  #loginReported = false;
  #timer: { readonly id: unknown; readonly at: number } | undefined;
  readonly #unsubscribe: (() => void)[] = [];
  #disposed = false;

  /** Takes over what is stored, and begins to send it. No callback is called before the constructor has returned. */
  constructor(options: PostOptions) {
    this.#options = options;
    const { storage, environment } = options;
    const { lifecycle } = environment;
    this.#unsubscribe.push(lifecycle.subscribe((signal) => this.#handleSignal(signal)));
    if (lifecycle.hidden) this.#queue.handleHidden(this.#now());
    if (this.#isOffline()) this.#queue.handleOffline(this.#now());
    const stop = quietly(() => storage?.subscribe((id) => this.#handleRemoved(id)));
    if (stop) this.#unsubscribe.push(stop);
    const stored = quietly(() => storage?.load()) ?? [];
    for (const { id } of stored) this.#stored.add(id);
    const leftOut = this.#queue.restore(stored, this.#now());
    this.#leftOut = new Set(leftOut);
    if (leftOut.length > 0) this.#notices.push(() => options.on?.leftOut?.(leftOut));
    this.#notifying = true;
    this.#work();
    this.#notifying = false;
    queueMicrotask(() => this.#notify());
  }

  /** All entries, in the order in which they are sent. Those that were delivered stay until `dismiss`, or until others need room. */
  get entries(): PostEntry[] {
    return this.#queue.entries;
  }

  /** Sends a command to the session with this id. It is stored when this returns. */
  send(session: SessionId, command: Command): SendResult {
    const id: string = newClientId();
    // They may not have been readable when there was room for them.
    if (!this.#disposed) this.#restoreLeftOut();
    const why = this.#disposed ? "invalid" : this.#queue.send(session, id, command, this.#now());
    this.#work();
    return why === undefined ? { ok: true, id } : { ok: false, why };
  }

  /** Sends a failed entry again, with the same id, or one that waits for another try at once. Returns false if it cannot be. */
  sendAgain(id: string): boolean {
    return this.#change(() => this.#queue.sendAgain(id, this.#now()));
  }

  /**
   * Restarts the session of a failed entry, then sends the entry again, with the same id. Rejects with an `ApiError` if the session
   * cannot be restarted; the entry stays failed then.
   */
  resumeAndSend(id: string): Promise<boolean> {
    const entry = this.#queue.entry(id);
    if (this.#disposed || entry?.state.name !== "failed" || !entry.command) return Promise.resolve(false);
    const running = this.#restarts.get(id);
    if (running) return running.done;
    const abort = new AbortController();
    const restart = async () => {
      try {
        await this.#options.api.restart(entry.session, undefined, abort.signal);
      } finally {
        this.#restarts.delete(id);
      }
      return this.sendAgain(id);
    };
    const done = restart();
    this.#restarts.set(id, { abort, done });
    return done;
  }

  /** Removes an entry that is not delivered. If it was sent before, it may still have been, or be, delivered. */
  discard(id: string): boolean {
    return this.#change(() => this.#queue.discard(id, this.#now()));
  }

  /** Removes an entry that was delivered. */
  dismiss(id: string): boolean {
    return this.#change(() => this.#queue.dismiss(id));
  }

  /** To be called with the events of every session: the one that records a command proves that it arrived. */
  handleEvent(session: SessionId, record: Pick<EventRecord, "seq" | "event">): void {
    const event = attempt(recorded)(record.event);
    const seq = attempt(count)(record.seq);
    if (!event || seq === undefined) return;
    this.#change(() => this.#queue.handleRecorded(session, event.command, seq, event.run, this.#now()));
  }

  /** To be called when the user has logged in again. */
  handleLogin(): void {
    this.#loginReported = false;
    this.#change(() => this.#queue.handleLogin(this.#now()));
  }

  /** Removes every timer and listener, and aborts every request. What is stored stays stored. No callback is called afterwards. */
  dispose(): void {
    this.#disposed = true;
    for (const unsubscribe of this.#unsubscribe.splice(0)) quietly(unsubscribe);
    this.#clearTimer();
    for (const request of this.#requests.values()) request.abort();
    this.#requests.clear();
    for (const { abort } of this.#restarts.values()) abort.abort();
    this.#notices.length = 0;
  }

  #now(): number {
    return (this.#options.wallClock ?? Date.now)();
  }

  #jitter(): number {
    return this.#options.environment.random() * 2 - 1;
  }

  #change<T>(change: () => T): T | false {
    if (this.#disposed) return false;
    const result = change();
    this.#work();
    return result;
  }

  #handleSignal(signal: LifecycleSignal): void {
    switch (signal) {
      case "hidden":
      case "frozen":
      case "left":
        this.#queue.handleHidden(this.#now());
        return this.#work();
      case "offline":
        if (!this.#options.api.isLoopback) this.#queue.handleOffline(this.#now());
        return this.#work();
      case "online":
        this.#forgetRemoved();
        this.#queue.handleOnline(this.#now());
        return this.#work();
      case "visible":
      case "restored":
      case "resumed":
        return this.#wake();
    }
  }

  /** A page that was frozen has missed what other tabs removed, and whether the network went or came back. */
  #wake(): void {
    this.#forgetRemoved();
    if (this.#isOffline()) this.#queue.handleOffline(this.#now());
    else this.#queue.handleOnline(this.#now());
    this.#queue.handleWake(this.#now());
    if (this.#options.environment.lifecycle.hidden) this.#queue.handleHidden(this.#now());
    this.#work();
  }

  /** Whether there is no network. A gateway on this machine can be reached without one. */
  #isOffline(): boolean {
    const { environment, api } = this.#options;
    return environment.lifecycle.offline === true && !api.isLoopback;
  }

  /** Another tab removed an entry from the storage, or the user emptied it. */
  #handleRemoved(id: string | undefined): void {
    if (id === undefined) {
      this.#stored.clear();
      return this.#restoreLeftOut();
    }
    if (this.#stored.has(id)) this.#change(() => this.#queue.handleRemoved(id, this.#now()));
  }

  #forgetRemoved(): void {
    const { storage } = this.#options;
    for (const id of this.#stored) {
      if (quietly(() => storage?.has(id)) === false) this.#queue.handleRemoved(id, this.#now());
    }
  }

  /** Takes over stored entries that did not fit before, as far as there is room. */
  #restoreLeftOut(): void {
    const leftOut = this.#leftOut;
    const loaded = leftOut.size > 0 ? quietly(() => this.#options.storage?.load()) : undefined;
    if (!loaded) return;
    const stored = loaded.filter(({ id }) => leftOut.has(id));
    const found = new Set(stored.map(({ id }) => id));
    for (const id of leftOut) if (!found.has(id)) this.#queue.handleRemoved(id, this.#now());
    this.#leftOut = new Set(this.#queue.restore(stored, this.#now()));
  }

  /** Does what the queue wants, sets the timer, and calls the callbacks. One that sends another command finds it stored. */
  #work(): void {
    if (this.#disposed) return;
    for (let action = this.#queue.pollAction(); action; action = this.#queue.pollAction()) this.#do(action);
    if (this.#queue.needsLogin && !this.#loginReported) {
      this.#loginReported = true;
      this.#notices.push(() => this.#options.on?.needsLogin?.());
    }
    this.#setTimer();
    this.#notify();
  }

  /** Calls the callbacks. After `dispose`, none is left. */
  #notify(): void {
    if (this.#notifying) return;
    this.#notifying = true;
    for (let notice = this.#notices.shift(); notice; notice = this.#notices.shift()) safely(notice);
    this.#notifying = false;
  }

  #do(action: PostAction): void {
    const { id } = action;
    const { on } = this.#options;
    switch (action.kind) {
      case "send":
        return this.#request(id, action.attempt);
      case "drop":
        this.#requests.get(action.attempt)?.abort();
        this.#requests.delete(action.attempt);
        return;
      case "store":
        return this.#store(id);
      case "unstore":
        this.#stored.delete(id);
        quietly(() => this.#options.storage?.remove(id));
        return this.#restoreLeftOut();
      case "show": {
        const entry = this.#queue.entry(id);
        if (entry) this.#notices.push(() => on?.entry?.(entry));
        return;
      }
      case "hide":
        this.#notices.push(() => on?.removed?.(id));
        return;
    }
  }

  #store(id: string): void {
    const { storage, on } = this.#options;
    const entry = this.#queue.entry(id);
    if (!entry) return;
    try {
      if (!storage) throw new Error("there is no storage");
      storage.save(id, toStored(entry));
      this.#stored.add(id);
    } catch {
      // What an earlier version of the entry left in the storage is still there.
      if (!this.#stored.has(id)) this.#notices.push(() => on?.memoryOnly?.(id));
    }
  }

  #request(id: string, attempt: number): void {
    const entry = this.#queue.entry(id);
    if (!entry?.command) return;
    const abort = new AbortController();
    this.#requests.set(attempt, abort);
    const { session, command } = entry;
    const handle = (response: PostResponse) => {
      this.#requests.delete(attempt);
      this.#change(() => {
        // A request may fail before the page is told that the network is gone.
        if (response.kind === "missing" && this.#isOffline()) this.#queue.handleOffline(this.#now());
        this.#queue.handleResponse(id, attempt, response, this.#jitter(), this.#now());
      });
    };
    const post = async () => this.#options.api.postCommand(session, id, command, abort.signal);
    post().then(handle, (cause: unknown) => handle({ kind: "missing", why: String(cause) }));
  }

  #setTimer(): void {
    const at = this.#queue.pollTimeout();
    if (this.#timer?.at === at) return;
    this.#clearTimer();
    if (at === undefined) return;
    const { timers } = this.#options.environment;
    const delay = Math.min(Math.max(Math.ceil(at - this.#now()), 0), MAX_DELAY);
    const due = timers.now() + delay;
    this.#timer = { at, id: timers.set(() => this.#handleTimer(due), delay) };
  }

  #handleTimer(due: number): void {
    this.#timer = undefined;
    const { timers, lifecycle } = this.#options.environment;
    // In a visible page, a late timer means that the machine slept.
    if (timers.now() - due > LATE && !lifecycle.hidden) this.#wake();
    this.#change(() => this.#queue.handleTimeout(this.#jitter(), this.#now()));
  }

  #clearTimer(): void {
    if (this.#timer) this.#options.environment.timers.clear(this.#timer.id);
    this.#timer = undefined;
  }
}

/** The result of a call that may throw; `undefined` if it does. */
function quietly<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}
