/**
 * Everything that can happen to a connection, in random order, checked against a simple model.
 *
 * A failing seed is printed; `BOWLINE_SEED=N npm test` runs it alone, and `BOWLINE_SEEDS=N` sets the number of seeds.
 */
import { describe, expect } from "vitest";
import { BROWSER, type ConnectionEnd, type Target } from "../src/index.js";
import { Rng } from "./sim/rng.js";
import { testSeeds } from "./sim/seeds.js";
import { Session } from "./sim/session.js";
import { Viewer } from "./sim/viewer.js";
import { type FakeSocket, settle, World } from "./sim/world.js";

const STEPS = 120;
/** Each key is a different number of this many bytes. */
const KEY_BYTES = 4;

/** The state that a user must see, derived only from what happened to dials. */
class Model {
  state = "connecting";
  #failures = 0;
  #openSince = Infinity;

  opened(now: number): void {
    this.state = "open";
    this.#openSince = now;
  }

  failed(now: number): void {
    if (now - this.#openSince >= 10_000) this.#failures = 0;
    this.#openSince = Infinity;
    this.state = this.#failures >= (BROWSER.tries ?? Infinity) ? "offline" : "reconnecting";
    if (this.state === "reconnecting") this.#failures += 1;
  }

  woken(): void {
    this.#failures = 0;
    if (this.state === "offline") this.state = "reconnecting";
  }
}

class Run {
  readonly world = new World();
  readonly session = new Session(this.world);
  readonly model = new Model();
  readonly viewer: Viewer;
  readonly trace: string[] = [];
  readonly #rng: Rng;
  /** For each socket, the client's `closed` callback, without the model's wrapper. */
  readonly #closeCallbacks = new Map<FakeSocket, (closed: ConnectionEnd) => void>();
  #builder: "works" | "fails" | "hangs" = "works";
  #hung: ((target: Target) => void)[] = [];
  #dials: { at: number; turn: number }[] = [];
  #turn = 0;
  /** The number of the current dial, under way or open. */
  #dial: number | undefined;
  /** The current dial, if nothing was received since the last wake. */
  #suspect: number | undefined;
  /** When such a dial was lost. Another one must follow at once. */
  #lost: number[] = [];
  /** Since when the page has been hidden without any wake. */
  #hiddenSince: number | undefined;
  #keys = 0;
  /** The keys that the session must have received in the end, in order. */
  #expected: number[] = [];
  /** The keys that were reported unsent and not decided about. */
  #undecided: number[] = [];
  #reportsChecked = 0;

  constructor(seed: number) {
    this.#rng = new Rng(seed);
    this.world.random = this.#rng.next;
    // The model sees what the network does to the current dial, and which sockets the client closes.
    const peer = this.session;
    const closedByClient = peer.closed.bind(peer);
    peer.closed = (socket: FakeSocket) => {
      closedByClient(socket);
      this.#handleFailure();
    };
    const answer = this.world.onDial;
    this.world.onDial = (socket) => {
      const { opened, received, closed } = socket.events;
      this.#closeCallbacks.set(socket, closed);
      Object.assign(socket.events, {
        opened: () => {
          this.#handleReceived(socket);
          opened();
        },
        received: (data: string | Uint8Array) => {
          this.#handleReceived(socket);
          if (typeof data === "string" && data.includes('"attached"')) this.model.opened(this.world.now);
          received(data);
        },
        closed: (end: ConnectionEnd) => {
          this.#handleFailure();
          closed(end);
        },
      });
      answer(socket);
    };
    this.viewer = new Viewer(this.world, { target: () => this.#buildTarget() });
    this.viewer.onError = () => this.#handleFailure();
  }

  #handleReceived(socket: FakeSocket): void {
    if (socket.state !== "closed") this.#suspect = undefined;
  }

  /** The current dial failed, or its connection ended. */
  #handleFailure(): void {
    this.model.failed(this.world.now);
    if (this.#suspect !== undefined && this.#suspect === this.#dial) {
      this.model.woken();
      this.#lost.push(this.world.now);
      if (this.#hiddenSince !== undefined) this.#hiddenSince = this.world.now;
    }
    this.#dial = this.#suspect = undefined;
  }

  #buildTarget(): Target | Promise<Target> {
    this.#dials.push({ at: this.world.now, turn: this.#turn });
    this.#dial = this.#dials.length;
    const target = { url: "ws://test/", protocols: [] };
    if (this.#builder === "works") return target;
    if (this.#builder === "fails") return Promise.reject(new Error("no"));
    return new Promise((resolve) => this.#hung.push(resolve));
  }

  async run(): Promise<void> {
    await this.#check("start");
    for (let i = 0; i < STEPS; i++) {
      const step = this.#step();
      this.trace.push(`${this.world.now} ${step}`);
      await this.#check(step);
    }
    await this.#finish();
  }

  /** Performs a random step, and returns its name. */
  #step(): string {
    const { world, session, viewer } = this;
    const rng = this.#rng;
    const steps: Record<string, () => void> = {
      print: () => session.print(Array.from({ length: 1 + rng.below(300) }, () => rng.below(256))),
      type: () => this.#type(1 + rng.below(5)),
      render: () => viewer.render(),
      slow: () => void (viewer.slow = !viewer.slow),
      cut: () => world.live[0]?.cut(rng.pick([code(1006), code(1001), code(1000), { kind: "failed" } as const])),
      zombie: () => world.live.forEach((socket) => (socket.zombie = true)),
      down: () => void (session.refuse = rng.pick([code(1006), code(1013), code(4425), code(4408), code(4502)])),
      up: () => {
        session.refuse = undefined;
        session.unresponsive = false;
      },
      mute: () => void (session.unresponsive = true),
      trim: () => session.trim(),
      lag: () => {
        session.lagging = true;
        world.live[0]?.cut(code(1006));
      },
      builder: () => void (this.#builder = rng.pick(["works", "works", "fails", "hangs"] as const)),
      answer_late: () => this.#hung.shift()?.({ url: "ws://late/", protocols: [] }),
      hide: () => this.#hide(),
      freeze: () => {
        this.#hide();
        world.signal("frozen");
        world.frozen = true;
      },
      wake: () => this.#wake(),
      resume_hidden: () => {
        if (!world.frozen) return;
        world.frozen = false;
        world.signal("resumed");
        this.#handleWake();
      },
      online: () => {
        if (world.frozen) return;
        world.signal("online");
        this.#handleWake();
      },
      retry: () => {
        if (world.frozen) return;
        viewer.connection.retry();
        this.#handleWake();
      },
      ghost: () => this.#ghost(),
      send_unsent: () => this.#decide(true),
      discard_unsent: () => this.#decide(false),
    };
    const name = rng.pick(Object.keys(steps));
    steps[name]!();
    return name;
  }

  #type(keys: number): void {
    for (let i = 0; i < keys; i++) {
      const key = ++this.#keys;
      const bytes = new Uint8Array(KEY_BYTES);
      new DataView(bytes.buffer).setUint32(0, key);
      expect(this.viewer.connection.input(bytes)).toBeUndefined();
      this.#expected.push(key);
    }
  }

  #decide(send: boolean): void {
    if (send) this.viewer.connection.sendUnsent();
    else this.viewer.connection.discardUnsent();
    if (send) this.#expected.push(...this.#undecided);
    this.#undecided = [];
  }

  #hide(): void {
    if (this.world.hidden) return;
    this.world.hidden = true;
    this.world.signal("hidden");
    this.#hiddenSince = this.world.now;
  }

  /** The page becomes visible, with as many signals as browsers like to send. */
  #wake(): void {
    const { world } = this;
    world.frozen = false;
    world.hidden = false;
    const signals = ["visible", "resumed", "restored", "online", "visible"] as const;
    for (const signal of signals.slice(this.#rng.below(4))) world.signal(signal);
    this.#handleWake();
    this.#hiddenSince = undefined;
  }

  #handleWake(): void {
    this.model.woken();
    const since = this.#dials.at(-1)?.at ?? 0;
    const open = this.world.live[0]?.state === "open";
    if (open || this.world.now - since > 2_000) this.#suspect = this.#dial;
    if (this.#hiddenSince !== undefined) this.#hiddenSince = this.world.now;
  }

  /** A socket that the client has dropped has events again: they must have no effect. */
  #ghost(): void {
    const old = this.world.sockets.filter((socket) => socket.state === "closed");
    if (old.length === 0) return;
    const { activity } = this.viewer;
    const before = [activity, [...this.world.timers.keys()], this.#dials.length];
    const socket = this.#rng.pick(old);
    socket.events.opened();
    socket.events.received('{"type":"bell"}');
    this.#closeCallbacks.get(socket)!(code(4404));
    expect([this.viewer.activity, [...this.world.timers.keys()], this.#dials.length]).toEqual(before);
  }

  /** Lets some time pass, then checks everything. */
  async #check(step: string): Promise<void> {
    const { world, session, viewer } = this;
    await settle();
    this.#observe();
    this.#turn += 1;
    const ms = this.#rng.pick([0, 1, 20, 300, 2_500, 12_000, this.#rng.oneIn(4) ? 90_000 : 700]);
    for (let left = ms; left > 0; left -= 500) {
      await world.advance(Math.min(left, 500));
      this.#observe();
      this.#turn += 1;
    }
    const { connection } = viewer;
    expect(viewer.errors.filter(({ source }) => source !== "target")).toEqual([]);
    const where = `after ${step} at ${world.now}`;
    expect(world.live.length, `at most one live socket, ${where}`).toBeLessThanOrEqual(1);
    expect(world.timers.size, `at most one timer, ${where}`).toBeLessThanOrEqual(1);
    expect(world.listeners.size, `one lifecycle listener, ${where}`).toBe(1);
    expect(differsAt(viewer.shown, session.log), `shows a prefix of the output, ${where}`).toBe(-1);
    expect(connection.state.name, `the model's state, ${where}`).toBe(this.model.state);
    expect(viewer.states.at(-1) ?? { name: "connecting" }, `the last state reported, ${where}`).toEqual(
      connection.state,
    );
    const twice = viewer.stateNames.findIndex(
      (name, i) => name !== "reconnecting" && name === viewer.stateNames[i - 1],
    );
    expect(twice, `each state reported once, ${where}`).toBe(-1);
  }

  #observe(): void {
    for (const { bytes, doubtful } of this.viewer.unsent.slice(this.#reportsChecked)) {
      expect(doubtful).toBe(0);
      const keys = keysOf(bytes);
      expect(keys.slice(0, this.#undecided.length), "a report repeats all keys that were reported before").toEqual(
        this.#undecided,
      );
      const more = keys.slice(this.#undecided.length);
      expect(more.length, "a report has new keys").toBeGreaterThan(0);
      expect(this.#expected.splice(-more.length)).toEqual(more);
      this.#undecided = keys;
    }
    this.#reportsChecked = this.viewer.unsent.length;
    // R13: at most one dial in a turn.
    const now = this.#dials.filter(({ turn, at }) => turn === this.#turn && at === this.world.now);
    if (now.length > 1) expect.fail(`${now.length} dials in one turn`);
    // R11, R12: a connection or dial that turned out to be dead after a wake is replaced at once.
    for (const at of this.#lost.splice(0)) {
      if (!this.#dials.some((dial) => dial.at === at)) expect.fail(`lost after a wake, but not dialled again at ${at}`);
    }
    // R11: a hidden page dials once a minute.
    const hidden = this.#dials.map(({ at }) => at).filter((at) => at > (this.#hiddenSince ?? Infinity));
    if (hidden.some((at, i) => i > 0 && at - hidden[i - 1]! < 60_000))
      expect.fail(`dialled too often while hidden, at ${hidden.join()}`);
  }

  /** Repairs everything: now all output and keys must arrive, once, and `dispose()` must leave nothing behind. */
  async #finish(): Promise<void> {
    const { world, session, viewer } = this;
    this.#builder = "works";
    session.refuse = undefined;
    session.unresponsive = false;
    viewer.slow = false;
    world.live.forEach((socket) => socket.cut(code(1006)));
    this.#wake();
    for (let i = 0; i < 100; i++) {
      viewer.render();
      this.#turn += 1;
      await world.advance(500);
      this.#observe();
    }
    expect(viewer.connection.state.name).toBe("open");
    expect([differsAt(viewer.shown, session.log), viewer.shown.length]).toEqual([-1, session.log.length]);
    expect(keysOf(Uint8Array.from(session.typed))).toEqual(this.#expected);
    viewer.connection.dispose();
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
  }
}

/** The first index at which `prefix` differs from `whole`, or -1. (`toEqual` would take most of the test's time.) */
function differsAt(prefix: number[], whole: number[]): number {
  return prefix.findIndex((byte, i) => byte !== whole[i]);
}

function code(code: number): ConnectionEnd {
  return { kind: "code", code, reason: "", done: false };
}

function keysOf(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / KEY_BYTES }, (_, i) => view.getUint32(i * KEY_BYTES));
}

describe("R5, R10-R17: random events in random order", () => {
  testSeeds(150, (seed) => new Run(seed));
});
