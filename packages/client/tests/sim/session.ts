/** A session and its gateway, as simple as they can be and still be right: the other end of the tests' connections. */
import { decodeBinary, encodeBinary, readClientMessage } from "../../src/core/index.js";
import type { Closed, ServerMessage, SessionInfo, Size } from "../../src/index.js";
import type { FakeSocket, Peer, World } from "./world.js";

const CHUNK = 64;

interface Viewer {
  readonly socket: FakeSocket;
  readonly client: string;
  next: number;
  acked: number;
}

/** A session. A snapshot of it is everything that it ever printed, so that a viewer can be compared byte by byte. */
export class Session implements Peer {
  epoch = "00000001";
  log: number[] = [];
  /** What was typed, over all clients, in the order in which it was taken. */
  typed: number[] = [];
  /** The oldest byte that a resume may start from. */
  oldest = 0;
  size: Size = { cols: 80, rows: 24 };
  window = 256;
  exit: { code: number } | undefined;
  /** How the next dials end instead of attaching. */
  refuse: Closed | undefined;
  /** The next attach gets a snapshot, though its cursor would do. */
  lagging = false;
  /** Takes dials and never answers. */
  mute = false;
  readonly hellos: any[] = [];
  readonly commands: string[] = [];
  readonly acks: number[] = [];
  #inputs = new Map<string, number>();
  #viewers: Viewer[] = [];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    world.peer = this;
    world.dialled = (socket) => world.later(() => this.#answer(socket));
  }

  #answer(socket: FakeSocket): void {
    if (this.mute) return;
    if (this.refuse?.kind === "code" && this.refuse.code !== 1006) {
      // A browser cannot read a refused upgrade: it is accepted, then closed.
      socket.accept();
      const { refuse } = this;
      this.#world.later(() => socket.cut(refuse));
    } else if (this.refuse) {
      socket.cut(this.refuse);
    } else {
      socket.accept();
    }
  }

  opened(): void {}

  left(socket: FakeSocket): void {
    this.#viewers = this.#viewers.filter((viewer) => viewer.socket !== socket);
  }

  /** Prints. */
  print(bytes: number[]): void {
    this.log.push(...bytes);
    this.#flow();
  }

  /** Forgets old output. */
  trim(): void {
    this.oldest = this.log.length;
  }

  /** The program ends. */
  end(code: number): void {
    this.exit = { code };
    this.#flow();
  }

  /** Restarts: another life, and input starts anew. */
  restart(): void {
    this.epoch = (Number.parseInt(this.epoch, 16) + 1).toString(16).padStart(8, "0");
    this.#inputs.clear();
    for (const { socket } of this.#viewers.splice(0)) socket.cut({ kind: "code", code: 1001, reason: "", done: false });
  }

  /** Sends a message to everybody. */
  say(message: ServerMessage): void {
    for (const viewer of this.#viewers) viewer.socket.give(JSON.stringify(message));
  }

  received(socket: FakeSocket, data: string | Uint8Array): void {
    if (this.refuse || this.mute) {
      // A stream that lost something carries nothing after it.
      socket.zombie = true;
      return;
    }
    const viewer = this.#viewers.find((other) => other.socket === socket);
    if (typeof data !== "string") return viewer && this.#takeInput(viewer, data);
    const message = readClientMessage(JSON.parse(data));
    switch (message?.type) {
      case "hello":
        this.hellos.push(message);
        return this.#attach(socket, message.client, message.conn, message.cursor);
      case "ack":
        if (viewer) viewer.acked = message.output;
        this.acks.push(message.output);
        return this.#flow();
      case "ping":
        return socket.give(JSON.stringify({ type: "pong", n: message.n }));
      case "command":
        if (!this.commands.includes(message.id)) this.commands.push(message.id);
        return socket.give(JSON.stringify({ type: "accepted", id: message.id, seq: 1, duplicate: false }));
      case "resize":
      case "claim_size":
        this.size = { cols: message.cols, rows: message.rows };
        return this.say({ type: "resize", ...this.size });
      default:
    }
  }

  #attach(socket: FakeSocket, client: string, conn: number, cursor: { epoch: string; offset: number } | null): void {
    const end = this.log.length;
    for (const old of this.#viewers.filter((other) => other.client === client)) {
      old.socket.cut({ kind: "code", code: 4409, reason: "", done: false });
    }
    this.#viewers = this.#viewers.filter((other) => other.client !== client);
    const exact = cursor?.epoch === this.epoch && cursor.offset >= this.oldest && cursor.offset <= end && !this.lagging;
    this.lagging = false;
    const offset = exact ? cursor.offset : end;
    const reason = cursor === null ? "fresh" : cursor.epoch !== this.epoch ? "epoch" : "trimmed";
    const known = this.#inputs.get(client);
    if (known === undefined) this.#inputs.set(client, 0);
    const attached = {
      type: "attached",
      session: this.info,
      epoch: this.epoch,
      offset,
      verdict: exact ? "exact" : "snapshot",
      ...(exact ? {} : { reason, snapshot: { bytes: offset } }),
      size: this.size,
      input: known ?? (conn === 1 ? 0 : null),
      you: { write: true, size: true },
      heartbeat: 20_000,
      window: this.window,
    };
    socket.give(JSON.stringify(attached));
    if (!exact) {
      for (let at = 0; at < offset; at += CHUNK) {
        socket.give(
          encodeBinary({ kind: "snapshot", bytes: Uint8Array.from(this.log.slice(at, Math.min(at + CHUNK, offset))) }),
        );
      }
    }
    this.#viewers.push({ socket, client, next: offset, acked: exact ? offset : offset - this.window });
    this.#flow();
  }

  #takeInput(viewer: Viewer, data: Uint8Array): void {
    const binary = decodeBinary(data);
    if (binary.kind !== "input") throw new Error("a client sends input");
    const expected = this.#inputs.get(viewer.client) ?? 0;
    if (binary.offset > expected) throw new Error(`a hole in the input: ${binary.offset} after ${expected}`);
    const fresh = binary.bytes.subarray(expected - binary.offset);
    this.typed.push(...fresh);
    this.#inputs.set(viewer.client, expected + fresh.length);
    viewer.socket.give(JSON.stringify({ type: "ack", input: expected + fresh.length }));
  }

  /** Sends what the window allows: a viewer that does not acknowledge gets no more. */
  #flow(): void {
    for (const viewer of this.#viewers) {
      while (viewer.next < this.log.length && viewer.next - viewer.acked < this.window) {
        const bytes = Uint8Array.from(this.log.slice(viewer.next, viewer.next + CHUNK));
        viewer.socket.give(encodeBinary({ kind: "output", offset: viewer.next, bytes }));
        viewer.next += bytes.length;
      }
      if (this.exit && viewer.next === this.log.length) {
        const { socket } = viewer;
        socket.give(JSON.stringify({ type: "exit", code: this.exit.code, signal: null, offset: this.log.length }));
        this.#world.later(() => socket.cut({ kind: "code", code: 1000, reason: "", done: false }), 1_000);
      }
    }
  }

  /** Its description. */
  get info(): SessionInfo {
    return {
      id: "k3v9x0q2m7aa",
      name: "build",
      kind: "terminal",
      state: "running",
      created: "2026-11-15T18:00:00Z",
      cwd: "/",
      argv: ["sh"],
      title: "",
      size: this.size,
      clients: 1,
      epoch: this.epoch,
      offset: this.log.length,
      degraded: false,
      version: "0.1.0",
    };
  }
}
