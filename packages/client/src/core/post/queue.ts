/** Decides when each entry is sent. No other code sends commands. */
import { delay } from "../backoff.js";
import type { SessionId } from "../wire.js";
import type { Command, Delivery, Failure, PostEntry } from "./entry.js";
import {
  exceeded,
  expires,
  fail,
  type Item,
  jsonLength,
  laneKey,
  newItem,
  READY,
  type SendError,
  statesOf,
} from "./item.js";
import { MAX_COMMAND, MAX_COMMAND_ID, MAX_SESSION, RESPONSE_WITHIN, RETRY } from "./limits.js";
import { classifyResponse, type PostResponse } from "./response.js";
import { fromStored, hasLength, isCommand } from "./stored.js";

/** What the driver must do. All actions are about the entry with this id. */
export type PostAction =
  /** Send the command, and report the response with this number. */
  | { readonly kind: "send"; readonly id: string; readonly attempt: number }
  /** Abort this request. Its response is ignored, unless it proves that the command arrived. */
  | { readonly kind: "drop"; readonly id: string; readonly attempt: number }
  /** Store the entry, so that it survives the page. */
  | { readonly kind: "store"; readonly id: string }
  /** Remove the entry from the storage. */
  | { readonly kind: "unstore"; readonly id: string }
  /** Show the entry: it is new, or its state has changed. */
  | { readonly kind: "show"; readonly id: string }
  /** The entry has left the queue. */
  | { readonly kind: "hide"; readonly id: string };

/** A stored entry: the id under which it was stored, and the text. */
export interface StoredEntry {
  readonly id: string;
  readonly stored: string;
}

/** The state machine that sends commands. The TypeScript twin of `PostQueue` in `crates/proto`. */
export class PostQueue {
  /** In the order of {@link PostEntry.order}. */
  #items: Item[] = [];
  /** The latest time that was passed in. */
  #now = 0;
  /** The number of the latest request. */
  #attempts = 0;
  /** The number of the latest request before the last login. */
  #attemptsBeforeLogin = 0;
  /** The highest order that was given or restored. */
  #lastOrder = 0;
  /** The sessions of stored entries of the ordered lane that did not fit, by their ids. */
  readonly #leftOut = new Map<string, SessionId>();
  #needsLogin = false;
  #offline = false;
  #hidden = false;
  #actions: PostAction[] = [];

  /** All entries, in the order in which they are sent. */
  get entries(): PostEntry[] {
    return this.#items.map((item) => item.entry);
  }

  /** Whether entries wait for {@link handleLogin}. */
  get needsLogin(): boolean {
    return this.#needsLogin;
  }

  entry(id: string): PostEntry | undefined {
    return this.#find(id)?.entry;
  }

  /**
   * Takes over a command, or says why not. `id` is new and unique, such as a UUID; `session` is the id of a session.
   */
  send(session: SessionId, id: string, command: Command, now: number): SendError | undefined {
    this.#setNow(now);
    const bytes = jsonLength(command);
    const isValid = hasLength(session, MAX_SESSION) && hasLength(id, MAX_COMMAND_ID) && isCommand(command);
    if (!isValid || bytes === undefined) return "invalid";
    if (this.#find(id)) return "id_in_use";
    const order = Math.max(this.#now, this.#lastOrder + 1);
    const entry = { id, session, command, made: this.#now, order, state: { name: "waiting", why: "turn" } } as const;
    const item = newItem(entry, bytes);
    if (bytes > MAX_COMMAND) return "too_long";
    const error = this.#overtakesLeftOut(item) ? "session_full" : this.#makeRoom(item);
    if (error) return error;
    this.#lastOrder = order;
    this.#items.push(item);
    this.#actions.push({ kind: "store", id });
    this.#advance();
    return undefined;
  }

  /**
   * Takes over entries that were stored before this page was loaded. Those that are younger than ten minutes are sent, the others
   * wait for the user.
   *
   * Returns the ids of those that do not fit; they stay stored, to be restored when there is room. Until then, `send` refuses what
   * would go before them.
   */
  restore(stored: Iterable<StoredEntry>, now: number): string[] {
    this.#setNow(now);
    const entries = Array.from(stored, ({ id, stored }) => fromStored(id, stored));
    const items = entries.map((entry) => newItem(entry, jsonLength(entry.command) ?? 0)).sort(byOrder);
    for (const { entry } of items) this.#leftOut.delete(entry.id);
    const leftOut: string[] = [];
    for (const item of items) {
      const { id, session, made, order } = item.entry;
      if (this.#find(id)) continue;
      // The clock was set back: the age of the entry is unknown, and counts from now.
      item.entry = { ...item.entry, made: Math.min(made, this.#now) };
      if (this.#overtakesLeftOut(item) || this.#makeRoom(item)) {
        if (item.lane === "ordered") this.#leftOut.set(id, session);
        leftOut.push(id);
        continue;
      }
      if (item.phase.name === "ready" && this.#isLate(item)) fail(item, "old");
      this.#lastOrder = Math.max(this.#lastOrder, order);
      this.#items.push(item);
    }
    this.#items.sort(byOrder);
    this.#advance();
    return leftOut;
  }

  /** The response to a request. `jitter` is in [-1, 1]. */
  handleResponse(id: string, attempt: number, response: PostResponse, jitter: number, now: number): void {
    this.#setNow(now);
    const item = this.#find(id);
    if (!item) return;
    const outcome = classifyResponse(id, response);
    // It is true whenever it arrives, also after the entry failed.
    const isProof = outcome.class === "delivered" && outcome.delivery.how === "accepted";
    if (!isProof && attemptOf(item) !== attempt) return;
    switch (outcome.class) {
      case "delivered":
        this.#deliver(item, outcome.delivery, attempt);
        break;
      case "needs_login":
        // A request that was sent before the login says nothing about it.
        if (attempt > this.#attemptsBeforeLogin) this.#needsLogin = true;
        item.phase = READY;
        break;
      case "retry":
        if (this.#offline && response.kind === "missing") {
          // Being offline is not a try.
          item.phase = READY;
        } else {
          item.lastError = outcome.message;
          this.#retry(item, outcome.notBefore ?? 0, outcome.binding, jitter);
        }
        break;
      case "failed":
        this.#fail(item, outcome.failure);
        break;
    }
    this.#advance();
  }

  /** The session's journal has a command with this id, as the number `seq`: an event said so. */
  handleRecorded(session: SessionId, id: string, seq: number, run: string | undefined, now: number): void {
    this.#setNow(now);
    const item = this.#find(id);
    if (item?.entry.session !== session) return;
    this.#deliver(item, { how: "accepted", seq, ...(run === undefined ? {} : { run }) });
    this.#advance();
  }

  /** Another tab settled or discarded the entry, and removed it from the storage that both use. */
  handleRemoved(id: string, now: number): void {
    this.#setNow(now);
    this.#leftOut.delete(id);
    this.#takeOut(id);
  }

  /** The user has logged in again. */
  handleLogin(now: number): void {
    this.#setNow(now);
    this.#needsLogin = false;
    this.#attemptsBeforeLogin = this.#attempts;
    this.#wake();
  }

  /** The device has no network. */
  handleOffline(now: number): void {
    this.#setNow(now);
    this.#offline = true;
    this.#advance();
  }

  /** The device has a network again. */
  handleOnline(now: number): void {
    this.#setNow(now);
    this.#offline = false;
    this.#wake();
  }

  /** The page was hidden: no timer runs until a wake. */
  handleHidden(now: number): void {
    this.#setNow(now);
    this.#hidden = true;
  }

  /**
   * The page is visible, or the machine resumed. What waits for another try is tried at once, unless the gateway requested a longer
   * wait; what was made more than ten minutes ago waits for the user.
   */
  handleWake(now: number): void {
    this.#setNow(now);
    this.#hidden = false;
    this.#wake();
  }

  #wake(): void {
    for (const item of this.#items) {
      this.#dropLateRequest(item);
      item.failures = 0;
      const { phase } = item;
      if (phase.name !== "ready" && phase.name !== "waiting") continue;
      if (this.#isLate(item)) {
        fail(item, "old");
        this.#store(item);
      } else if (phase.name === "waiting") {
        item.phase = phase.notBefore > this.#now ? { ...phase, at: phase.notBefore } : READY;
      }
    }
    this.#advance();
  }

  /** To be called at the time that {@link pollTimeout} returns. `jitter` is in [-1, 1]. */
  handleTimeout(jitter: number, now: number): void {
    this.#setNow(now);
    if (this.#hidden) return;
    for (const item of this.#items) {
      if (this.#dropLateRequest(item) && !this.#offline) this.#retry(item, 0, false, jitter);
      const { phase } = item;
      if (phase.name !== "ready" && phase.name !== "waiting") continue;
      if (this.#isLate(item)) {
        fail(item, "expired");
        this.#store(item);
      } else if (phase.name === "waiting" && phase.at <= this.#now) {
        item.phase = READY;
      }
    }
    this.#advance();
  }

  /** When to call {@link handleTimeout}, in milliseconds since 1970. */
  pollTimeout(): number | undefined {
    if (this.#hidden) return undefined;
    const canSend = !this.#needsLogin && !this.#offline;
    let next = Infinity;
    for (const item of this.#items) {
      const { phase } = item;
      if (phase.name === "in-flight") next = Math.min(next, phase.until);
      if (phase.name === "ready" || phase.name === "waiting") next = Math.min(next, expires(item));
      if (phase.name === "waiting" && canSend) next = Math.min(next, phase.at);
    }
    return next === Infinity ? undefined : next;
  }

  pollAction(): PostAction | undefined {
    return this.#actions.shift();
  }

  /**
   * Sends a failed entry again, or one that waits for another try at once. It gets another ten minutes, and keeps its id and its
   * place. Returns false if there is no such entry, or nothing to send.
   */
  sendAgain(id: string, now: number): boolean {
    this.#setNow(now);
    const item = this.#find(id);
    if (!item?.entry.command) return false;
    const { phase } = item;
    if (phase.name === "in-flight" || phase.name === "delivered") return false;
    if (phase.name !== "waiting" || phase.notBefore <= this.#now) item.phase = READY;
    item.entry = { ...item.entry, made: this.#now };
    item.tries = item.failures = 0;
    this.#advance();
    this.#store(item);
    return true;
  }

  /** Removes an entry that is not delivered. If it was sent before, it may still have been, or be, delivered. */
  discard(id: string, now: number): boolean {
    this.#setNow(now);
    return this.#takeOut(id);
  }

  #takeOut(id: string): boolean {
    const item = this.#find(id);
    if (!item || item.phase.name === "delivered") return false;
    // Also if another tab removed it: this one may have stored it again in the meantime.
    this.#actions.push({ kind: "unstore", id });
    this.#remove(item);
    this.#advance();
    return true;
  }

  /** Removes an entry that was delivered. */
  dismiss(id: string): boolean {
    const item = this.#find(id);
    if (item?.phase.name !== "delivered") return false;
    this.#remove(item);
    return true;
  }

  #find(id: string): Item | undefined {
    return this.#items.find((item) => item.entry.id === id);
  }

  /** Whether an entry would be sent before one that was left out. */
  #overtakesLeftOut({ lane, entry }: Item): boolean {
    return lane === "ordered" && [...this.#leftOut.values()].includes(entry.session);
  }

  #isLate(item: Item): boolean {
    return expires(item) <= this.#now;
  }

  /** Notes the time. If the clock was set back, all times are, too, so that nothing has to wait until the clock has caught up. */
  #setNow(now: number): void {
    if (!Number.isFinite(now)) return;
    const back = this.#now - now;
    this.#now = now;
    if (back <= 0) return;
    for (const item of this.#items) {
      const { phase } = item;
      item.entry = { ...item.entry, made: Math.max(item.entry.made - back, 0) };
      if (phase.name === "in-flight") item.phase = { ...phase, until: phase.until - back };
      if (phase.name === "waiting") {
        item.phase = { ...phase, at: phase.at - back, notBefore: phase.notBefore - back };
      }
    }
  }

  /** Checks that an entry fits. Delivered ones make room for it, the oldest first; all stay if it does not fit even then. */
  #makeRoom(added: Item): SendError | undefined {
    const leaving = new Set<Item>();
    for (;;) {
      const staying = this.#items.filter((item) => !leaving.has(item));
      const limit = exceeded(staying, added);
      if (!limit) break;
      const oldest = staying.find(
        ({ lane, phase, entry }) =>
          phase.name === "delivered" &&
          lane === added.lane &&
          (!limit.session || entry.session === added.entry.session),
      );
      if (!oldest) return limit.error;
      leaving.add(oldest);
    }
    for (const item of leaving) this.#remove(item);
    return undefined;
  }

  /** Removes an entry from the queue, and drops its request. */
  #remove(item: Item): void {
    const { id } = item.entry;
    this.#items = this.#items.filter((other) => other !== item);
    const attempt = attemptOf(item);
    if (attempt !== undefined) this.#actions.push({ kind: "drop", id, attempt });
    this.#actions.push({ kind: "hide", id });
  }

  /** Settles an entry. `answered` is the request whose response says so; another one that is under way is dropped. */
  #deliver(item: Item, delivery: Delivery, answered?: number): void {
    if (item.phase.name === "delivered") return;
    const { id } = item.entry;
    const attempt = attemptOf(item);
    if (attempt !== undefined && attempt !== answered) this.#actions.push({ kind: "drop", id, attempt });
    this.#actions.push({ kind: "unstore", id });
    item.phase = { name: "delivered", delivery };
  }

  #fail(item: Item, failure: Failure): void {
    item.phase = { name: "failed", failure };
    this.#store(item);
  }

  /** Has the entry stored. A failed one must be stored as such, or it would be sent after a reload. */
  #store(item: Item): void {
    this.#actions.push({ kind: "store", id: item.entry.id });
  }

  /** Drops the request of an entry if it has had no response for too long. */
  #dropLateRequest(item: Item): boolean {
    const { phase } = item;
    if (phase.name !== "in-flight" || phase.until > this.#now) return false;
    this.#actions.push({ kind: "drop", id: item.entry.id, attempt: phase.attempt });
    item.phase = READY;
    item.lastError = `no response within ${RESPONSE_WITHIN / 1000} s`;
    return true;
  }

  /** Plans the next try, unless the ten minutes are over. */
  #retry(item: Item, wait: number, binding: boolean, jitter: number): void {
    item.tries += 1;
    if (this.#isLate(item)) {
      fail(item, "expired");
      return this.#store(item);
    }
    const backoff = Math.floor(delay(RETRY, item.failures, jitter) ?? RETRY.cap);
    item.failures += 1;
    const notBefore = binding ? this.#now + wait : 0;
    item.phase = { name: "waiting", at: this.#now + Math.max(backoff, wait), notBefore };
  }

  /** Sends what can be sent, and announces what has changed. */
  #advance(): void {
    if (!this.#needsLogin && !this.#offline) this.#startRequests();
    const states = statesOf(this.#items, this.#needsLogin, this.#offline);
    this.#items.forEach((item, i) => {
      const state = states[i]!;
      if (item.shown && JSON.stringify(item.entry.state) === JSON.stringify(state)) return;
      item.shown = true;
      item.entry = { ...item.entry, state };
      this.#actions.push({ kind: "show", id: item.entry.id });
    });
  }

  /** Sends the next entry of each lane that has none in flight. One that is late fails: the user decides. */
  #startRequests(): void {
    const closed = new Set(this.#items.filter((item) => attemptOf(item) !== undefined).map(laneKey));
    for (const item of this.#items) {
      const lane = laneKey(item);
      if (item.phase.name === "delivered" || closed.has(lane)) continue;
      if (item.phase.name === "ready" && this.#isLate(item)) {
        // A hidden page has no timer that noticed it.
        fail(item, "old");
        this.#store(item);
      }
      if (item.phase.name === "ready") {
        this.#attempts += 1;
        item.phase = { name: "in-flight", attempt: this.#attempts, until: this.#now + RESPONSE_WITHIN };
        this.#actions.push({ kind: "send", id: item.entry.id, attempt: this.#attempts });
        closed.add(lane);
      } else if (item.lane === "ordered") {
        closed.add(lane);
      }
    }
  }
}

/** The request that is under way. */
function attemptOf({ phase }: Item): number | undefined {
  return phase.name === "in-flight" ? phase.attempt : undefined;
}

function byOrder({ entry: a }: Item, { entry: b }: Item): number {
  return a.order - b.order || (a.id < b.id ? -1 : Number(a.id > b.id));
}
