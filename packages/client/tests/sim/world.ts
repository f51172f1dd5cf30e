/** An environment under the control of a test: clock, timers, page and network. */
import type {
  ConnectionEnd,
  Environment,
  Lifecycle,
  LifecycleSignal,
  Socket,
  SocketEvents,
  Target,
} from "../../src/index.js";

interface Task {
  readonly at: number;
  readonly run: () => void;
}

/** The server's end of all sockets. */
export interface Peer {
  opened(socket: FakeSocket): void;
  received(socket: FakeSocket, data: string | Uint8Array): void;
  /** The client closed the socket with this code. */
  closed(socket: FakeSocket, code: number): void;
}

/** Both ends of a WebSocket. */
export class FakeSocket implements Socket {
  /** As the client sees it. */
  state: "opening" | "open" | "closed" = "opening";
  /** Whether frames are lost in both directions although the socket seems open. */
  zombie = false;
  readonly target: Target;
  readonly events: SocketEvents;
  readonly #world: World;
  /** When the last frame to the client arrives. Frames arrive in order. */
  #last = 0;

  constructor(world: World, target: Target, events: SocketEvents) {
    this.#world = world;
    this.target = target;
    this.events = events;
  }

  send(data: string | Uint8Array): void {
    if (this.state !== "open") throw new Error(`send() on a socket that is ${this.state}`);
    const copy = typeof data === "string" ? data : data.slice();
    this.#world.later(() => !this.zombie && this.state === "open" && this.#world.peer.received(this, copy));
  }

  close(code: number): void {
    if (code !== 1000 && (code < 3000 || code > 4999)) throw new Error(`a browser cannot close with code ${code}`);
    if (this.state === "closed") return;
    this.state = "closed";
    this.#world.peer.closed(this, code);
  }

  /** Server side: accepts the upgrade. */
  accept(): void {
    if (this.state !== "opening") return;
    this.state = "open";
    this.events.opened();
    this.#world.peer.opened(this);
  }

  /** Server side: sends a frame to the client. */
  deliver(data: string | Uint8Array): void {
    const world = this.#world;
    this.#last = Math.max(this.#last + 1, world.now + world.latency);
    world.later(() => !this.zombie && this.state === "open" && this.events.received(data), this.#last - world.now);
  }

  /** Server side or network: ends the connection. */
  cut(closed: ConnectionEnd): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.events.closed(closed);
  }
}

export class World implements Lifecycle {
  now = 0;
  hidden = false;
  offline = false;
  /** Whether the page is frozen: time passes, but its timers do not run. */
  frozen = false;
  peer: Peer = { opened: () => {}, received: () => {}, closed: () => {} };
  readonly sockets: FakeSocket[] = [];
  readonly timers = new Map<number, Task>();
  readonly listeners = new Set<(signal: LifecycleSignal) => void>();
  /** Called for each new socket. */
  onDial: (socket: FakeSocket) => void = () => {};
  random: () => number = () => 0.5;
  latency = 10;
  #events: Task[] = [];
  #ids = 0;

  get environment(): Environment {
    return {
      socket: (target, events) => {
        const socket = new FakeSocket(this, target, events);
        this.sockets.push(socket);
        this.onDial(socket);
        return socket;
      },
      timers: {
        now: () => this.now,
        set: (run, ms) => {
          this.timers.set(++this.#ids, { at: this.now + ms, run });
          return this.#ids;
        },
        clear: (id) => this.timers.delete(id as number),
      },
      random: () => this.random(),
      lifecycle: this,
    };
  }

  subscribe(listener: (signal: LifecycleSignal) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Sends a lifecycle signal to the page. */
  signal(signal: LifecycleSignal): void {
    if (signal === "online" || signal === "offline") this.offline = signal === "offline";
    for (const listener of [...this.listeners]) listener(signal);
  }

  /** Sockets that the client has not closed or lost. */
  get live(): FakeSocket[] {
    return this.sockets.filter((socket) => socket.state !== "closed");
  }

  /** Runs something after the latency of the network. */
  later(run: () => void, ms = this.latency): void {
    this.#events.push({ at: this.now + ms, run });
  }

  /** Advances the clock, and runs all timers and network events on the way. */
  async advance(ms: number): Promise<void> {
    const until = this.now + ms;
    for (;;) {
      await settle();
      const next = this.#next(until);
      if (!next) break;
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = until;
    await settle();
  }

  /** Removes and returns the earliest task that is due. None is while the page is frozen. */
  #next(until: number): Task | undefined {
    if (this.frozen) return undefined;
    const timer = [...this.timers].sort(([, a], [, b]) => a.at - b.at)[0];
    const event = this.#events.length ? this.#events.reduce((a, b) => (a.at <= b.at ? a : b)) : undefined;
    if (event && event.at <= until && !(timer && timer[1].at < event.at)) {
      this.#events.splice(this.#events.indexOf(event), 1);
      return event;
    }
    if (!timer || timer[1].at > until) return undefined;
    this.timers.delete(timer[0]);
    return timer[1];
  }
}

/** Lets pending promises run; no test chains more than a few of them. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}
