/**
 * Everything that can happen to conversations on one event stream, in random order: each reader must have exactly the
 * journal, every number once and in order, and the state that is folded from all of it.
 *
 * A failing seed is printed; `BOWLINE_SEED=N npm test` runs it alone, and `BOWLINE_SEEDS=N` sets the number of seeds.
 */
import { describe, expect } from "vitest";
import { ApiError, type ConnectionEnd, EventsConnection } from "../src/index.js";
import { description, Gateway } from "./sim/gateway.js";
import { Journal, piece } from "./sim/journal.js";
import { Reader } from "./sim/reader.js";
import { Rng } from "./sim/rng.js";
import { testSeeds } from "./sim/seeds.js";
import { type FakeSocket, World } from "./sim/world.js";

const STEPS = 120;
const SESSIONS = 3;

class Run {
  readonly world = new World();
  readonly gateway: Gateway;
  readonly events: EventsConnection;
  readonly trace: string[] = [];
  readonly #rng: Rng;
  /** The ids of all sessions. */
  readonly #ids: string[] = [];
  #count = 0;
  readonly #readers = new Map<string, Reader>();
  /** Readers whose session was forgotten: each must find out. */
  readonly #forgotten = new Set<Reader>();
  /** Readers that are over, with the calls that they had got then. */
  readonly #over: { reader: Reader; calls: number }[] = [];
  /** The calls that a reader had got when it was checked last. */
  readonly #checked = new Map<Reader, number>();
  #runs = 0;

  constructor(seed: number) {
    const rng = (this.#rng = new Rng(seed));
    this.world.random = rng.next;
    this.gateway = new Gateway(this.world);
    while (this.#ids.length < SESSIONS) this.#create();
    this.gateway.burst = () => rng.pick([1, 5, Infinity]);
    this.gateway.join = () => rng.pick([1, 1, 3, 64]);
    this.gateway.pageLatency = () => rng.pick([1, 10, 30, 400]);
    this.events = new EventsConnection({
      environment: this.world.environment,
      target: () => ({ url: "ws://test/", protocols: [] }),
      on: {},
    });
  }

  async run(): Promise<void> {
    for (let i = 0; i < STEPS; i++) {
      const step = this.#step();
      this.trace.push(`${this.world.now} ${step}`);
      await this.world.advance(this.#rng.pick([0, 1, 5, 15, 40, 300, 3_000]));
      this.#check(step);
    }
    await this.#finish();
  }

  #step(): string {
    const { world, gateway } = this;
    const rng = this.#rng;
    const id = rng.pick(this.#ids);
    const journal = gateway.journals.get(id)!;
    const reader = this.#readers.get(id);
    const steps: Record<string, () => void> = {
      append: () => this.#append(journal, 1 + rng.below(30)),
      append_more: () => this.#append(journal, 1 + rng.below(4)),
      restart: () => journal.restart(),
      repair: () => journal.repair(rng.below(12)),
      open: () => this.#open(id),
      open_again: () => this.#open(id),
      close: () => reader && this.#close(id, reader),
      close_and_open: () => {
        if (reader) this.#close(id, reader);
        this.#open(id);
      },
      older: () => void reader?.connection.older(),
      older_again: () => void reader?.connection.older(),
      cut: () => world.live[0]?.cut(rng.pick([code(1006), code(1013), { kind: "failed" } as const])),
      zombie: () => world.live.forEach((socket) => (socket.zombie = true)),
      ghost: () => this.#ghost(),
      down: () => void (gateway.refuse = code(1006)),
      up: () => void (gateway.refuse = undefined),
      fail: () => void (gateway.failure = refusal(503)),
      refuse: () => void (gateway.failure = refusal(429, rng.below(5_000))),
      log_out: () => void (gateway.failure = refusal(401)),
      work: () => void (gateway.failure = undefined),
      retry: () => reader?.connection.retry(),
      wake: () => world.signal("online"),
      offline: () => world.signal("offline"),
      hide: () => this.#hide(true),
      show: () => this.#hide(false),
      forget: () => this.#forget(id),
      forget_nothing: () => gateway.send({ type: "session_gone", id }),
      // Far ahead: a wrong event that happened to have the right number would be accepted.
      gap: () => gateway.send(event(id, journal.end + 50)),
      repeat: () => gateway.send(event(id, 0)),
    };
    const name = rng.pick(Object.keys(steps));
    steps[name]!();
    gateway.pump();
    return `${name} ${id[0]}`;
  }

  #create(): void {
    const id = String.fromCharCode(97 + (this.#count % 26)) + String(this.#count++).padStart(11, "0");
    this.#ids.push(id);
    this.gateway.journals.set(id, new Journal(id));
  }

  /** Another session takes its place, since a session that was forgotten never comes back. */
  #forget(id: string): void {
    this.#ids.splice(this.#ids.indexOf(id), 1);
    this.gateway.forget(id);
    const reader = this.#readers.get(id);
    if (reader) this.#forgotten.add(reader);
    this.#readers.delete(id);
    this.#create();
  }

  #hide(hidden: boolean): void {
    this.world.hidden = hidden;
    this.world.signal(hidden ? "hidden" : "visible");
  }

  #append(journal: Journal, count: number): void {
    for (let i = 0; i < count; i++) {
      const run = `r${this.#runs}`;
      const command = { command: "c", digest: "d", by: "local" };
      journal.append(
        this.#rng.pick<() => object>([
          () => piece(`${journal.end} `, `m${journal.end >> 3}`),
          () => piece(`${journal.end} `, `m${journal.end >> 3}`),
          () => ({ type: "prompt", run: `r${++this.#runs}`, text: "hi", attachments: [], ...command }),
          () => ({ type: "run_started", run, cause: "prompt" }),
          () => ({ type: "thinking", run, block: "t", delta: "hm" }),
          () => ({ type: "tool_call", run, call: "t", title: "make" }),
          () => ({ type: "title", title: `title ${journal.end}` }),
          () => ({ type: "hologram", beams: 2 }),
        ])(),
      );
    }
  }

  #open(id: string): void {
    const before = this.#readers.get(id);
    this.#readers.set(
      id,
      new Reader(this.world, this.gateway, this.events, id, { limit: this.#rng.pick([3, 20, 200]) }),
    );
    // The earlier reader ends as soon as the later one watches. Sometimes it was closed before, sometimes it is after.
    if (before && this.#rng.oneIn(2)) this.#close(undefined, before);
    else if (before) this.world.later(() => this.#close(undefined, before), this.#rng.below(500));
  }

  #close(id: string | undefined, reader: Reader): void {
    if (id !== undefined) this.#readers.delete(id);
    this.#forgotten.delete(reader);
    reader.connection.dispose();
    this.#over.push({ reader, calls: reader.calls });
  }

  /** A socket that the client has dropped has events again: they must have no effect. */
  #ghost(): void {
    const old = this.world.sockets.filter((socket) => socket.state === "closed");
    if (old.length === 0) return;
    const socket: FakeSocket = this.#rng.pick(old);
    const calls = this.#calls();
    socket.events.received(JSON.stringify(event(this.#ids[0]!, 0)));
    socket.events.closed(code(4404));
    expect(this.#calls()).toBe(calls);
  }

  #calls(): number {
    return [...this.#readers.values()].reduce((sum, { calls }) => sum + calls, 0);
  }

  #check(step: string): void {
    const where = `after ${step} at ${this.world.now}`;
    expect(this.world.live.length, `at most one socket, ${where}`).toBeLessThanOrEqual(1);
    const loud = this.#over.some(({ reader, calls }) => reader.calls !== calls);
    expect(loud, `nothing is called once it is over, ${where}`).toBe(false);
    for (const [id, reader] of this.#readers) {
      expect(reader.connection.state.name, `not over, ${where}`).not.toMatch(/ended|gone/);
      const journal = this.gateway.journals.get(id)!;
      const isOpen = reader.connection.state.name === "open";
      const isAtEnd = reader.epoch === journal.epoch && reader.end === journal.end;
      const changed = this.#checked.get(reader) !== reader.calls;
      this.#checked.set(reader, reader.calls);
      if (!isOpen || !changed || !isAtEnd) continue;
      reader.expectUpToDate(journal, where);
      expect(reader.connection.isNewer(description(journal)), `it has all of it, ${where}`).toBe(false);
    }
  }

  /** Everything works again: readers must get all that they lack, and page back to the beginning. */
  async #finish(): Promise<void> {
    const { world, gateway } = this;
    gateway.refuse = gateway.failure = undefined;
    gateway.pageLatency = () => 5;
    world.live.forEach((socket) => socket.cut(code(1006)));
    this.#hide(false);
    // The user logs in once all refusals have arrived.
    await world.advance(500);
    for (const reader of [...this.#readers.values(), ...this.#forgotten]) reader.connection.retry();
    const isWhole = (reader: Reader) => reader.start === 0 && reader.connection.state.name === "open";
    const isGone = (reader: Reader) => reader.connection.state.name === "gone";
    const isDone = () => [...this.#readers.values()].every(isWhole) && [...this.#forgotten].every(isGone);
    for (let i = 0; i < 300 && !isDone(); i++) {
      gateway.pump();
      for (const reader of this.#readers.values()) void reader.connection.older();
      await world.advance(100);
    }
    await world.advance(1_000);
    for (const [id, reader] of this.#readers) {
      const journal = gateway.journals.get(id)!;
      reader.expectUpToDate(journal, `in the end, ${id}`);
      expect([reader.start, reader.connection.hasOlder]).toEqual([0, false]);
      const first = reader.records.map(({ seq, from = seq }) => from);
      expect(first, "ranges tile").toEqual([0, ...reader.records.slice(0, -1).map(({ seq }) => seq + 1)]);
    }
    for (const reader of this.#forgotten) {
      expect(reader.connection.state, "forgotten").toMatchObject({ name: "gone", why: "unknown" });
    }
    expect(gateway.watched).toEqual([...this.#readers.keys()].sort());
    for (const [id, reader] of this.#readers) this.#close(id, reader);
    await world.advance(100);
    expect([gateway.watched, world.listeners.size]).toEqual([[], 1]);
    this.events.dispose();
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
  }
}

function code(code: number): ConnectionEnd {
  return { kind: "code", code, reason: "", done: false };
}

function refusal(status: number, retryAfter?: number): ApiError {
  return new ApiError(status, "refused", "not now", { fromGateway: true, retryAfter });
}

function event(session: string, seq: number): object {
  return { type: "event", session, seq, at: "", event: piece("wrong") };
}

describe("R40: conversations in random order", () => {
  testSeeds(100, (seed) => new Run(seed));
});
