/** A world that a test owns: its clock, its timers, its page and its network. */
import type { Closed, Environment, Lifecycle, LifecycleSignal, Socket, SocketEvents, Target } from "../../src/index.js";

interface Due {
  readonly at: number;
  readonly run: () => void;
}

/** What the other end of a socket is. */
export interface Peer {
  opened(socket: FakeSocket): void;
  received(socket: FakeSocket, data: string | Uint8Array): void;
  /** The client closed it, with this code. */
  left(socket: FakeSocket, code: number): void;
}

/** A socket, seen from both ends. */
export class FakeSocket implements Socket {
  /** `open` means that the client has it and has not heard of its end. */
  state: "opening" | "open" | "closed" = "opening";
  /** Frames vanish both ways, and the socket still says that it is open. */
  zombie = false;
  readonly target: Target;
  readonly events: SocketEvents;
  readonly #world: World;
  /** When the last frame to the client arrives: they come one after the other. */
  #last = 0;

  constructor(world: World, target: Target, events: SocketEvents) {
    this.#world = world;
    this.target = target;
    this.events = events;
  }

  send(data: string | Uint8Array): void {
    if (this.state !== "open") throw new Error(`sent on a socket that is ${this.state}`);
    const copy = typeof data === "string" ? data : data.slice();
    this.#world.later(() => !this.zombie && this.state === "open" && this.#world.peer.received(this, copy));
  }

  close(code: number): void {
    if (code !== 1000 && (code < 3000 || code > 4999)) throw new Error(`a browser does not close with ${code}`);
    if (this.state === "closed") return;
    this.state = "closed";
    this.#world.peer.left(this, code);
  }

  /** The server's side: the upgrade went well. */
  accept(): void {
    if (this.state !== "opening") return;
    this.state = "open";
    this.events.opened();
    this.#world.peer.opened(this);
  }

  /** The server's side: a frame to the client. */
  give(data: string | Uint8Array): void {
    const world = this.#world;
    this.#last = Math.max(this.#last + 1, world.now + world.latency);
    world.later(() => !this.zombie && this.state === "open" && this.events.received(data), this.#last - world.now);
  }

  /** The server's side, or the network's: it is over. */
  cut(closed: Closed): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.events.closed(closed);
  }
}

/** The world. */
export class World implements Lifecycle {
  now = 0;
  hidden = false;
  /** Time goes on, and the page does not notice. */
  frozen = false;
  peer: Peer = { opened: () => {}, received: () => {}, left: () => {} };
  readonly sockets: FakeSocket[] = [];
  readonly timers = new Map<number, Due>();
  readonly listeners = new Set<(signal: LifecycleSignal) => void>();
  /** Called for each new socket. */
  dialled: (socket: FakeSocket) => void = () => {};
  random: () => number = () => 0.5;
  latency = 10;
  #events: Due[] = [];
  #ids = 0;

  get environment(): Environment {
    return {
      socket: (target, events) => {
        const socket = new FakeSocket(this, target, events);
        this.sockets.push(socket);
        this.dialled(socket);
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

  /** Tells the page. */
  signal(signal: LifecycleSignal): void {
    for (const listener of [...this.listeners]) listener(signal);
  }

  /** Sockets that the client still holds. */
  get live(): FakeSocket[] {
    return this.sockets.filter((socket) => socket.state !== "closed");
  }

  /** The network does something after its latency. */
  later(run: () => void, ms = this.latency): void {
    this.#events.push({ at: this.now + ms, run });
  }

  /** Lets time pass, with everything that is due in it. */
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

  /** Takes the earliest thing that is due; a frozen page hears nothing and runs nothing. */
  #next(until: number): Due | undefined {
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

/** Lets promises run: nothing here chains more than a few of them. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}
