/** The other end of the tests' connections: a minimal but correct session and gateway. */
import { decodeBinary, encodeBinary, readClientMessage } from "../../src/core/index.js";
import type { ConnectionEnd, ServerMessage, SessionInfo, Size } from "../../src/index.js";
import type { FakeSocket, Peer, World } from "./world.js";

const CHUNK = 64;

interface Viewer {
  readonly socket: FakeSocket;
  readonly client: string;
  next: number;
  acked: number;
}

/** A fake session. Its snapshot is all of its output, so that a viewer can be compared byte by byte. */
export class Session implements Peer {
  epoch = "00000001";
  log: number[] = [];
  /** The input of all clients, in the order in which it was accepted. */
  typed: number[] = [];
  /** The oldest byte that a resume may start from. */
  oldest = 0;
  size: Size = { cols: 80, rows: 24 };
  window = 256;
  exit: { code: number } | undefined;
  /** If set, dials end like this instead of attaching. */
  refuse: ConnectionEnd | undefined;
  /** Whether the next attach gets a snapshot although its cursor could be resumed. */
  lagging = false;
  /** Whether dials stay unanswered. */
  unresponsive = false;
  readonly hellos: any[] = [];
  readonly commands: string[] = [];
  readonly acks: number[] = [];
  #inputs = new Map<string, number>();
  #viewers: Viewer[] = [];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    world.peer = this;
    world.onDial = (socket) => world.later(() => this.#answer(socket));
  }

  #answer(socket: FakeSocket): void {
    if (this.unresponsive) return;
    if (this.refuse?.kind === "code" && this.refuse.code !== 1006) {
      // A browser cannot see why an upgrade was refused, so the gateway accepts it and then closes with a code.
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

  closed(socket: FakeSocket): void {
    this.#viewers = this.#viewers.filter((viewer) => viewer.socket !== socket);
  }

  print(bytes: number[]): void {
    this.log.push(...bytes);
    this.#sendOutput();
  }

  /** Drops all output from the log. */
  trim(): void {
    this.oldest = this.log.length;
  }

  /** The program exits. */
  end(code: number): void {
    this.exit = { code };
    this.#sendOutput();
  }

  /** Starts a new epoch; input offsets start at 0 again. */
  restart(): void {
    this.epoch = (Number.parseInt(this.epoch, 16) + 1).toString(16).padStart(8, "0");
    this.#inputs.clear();
    for (const { socket } of this.#viewers.splice(0)) socket.cut({ kind: "code", code: 1001, reason: "", done: false });
  }

  /** Sends a message to all viewers. */
  broadcast(message: ServerMessage): void {
    for (const viewer of this.#viewers) viewer.socket.deliver(JSON.stringify(message));
  }

  received(socket: FakeSocket, data: string | Uint8Array): void {
    if (this.refuse || this.unresponsive) {
      // A stream that lost data delivers nothing after it.
      socket.zombie = true;
      return;
    }
    const viewer = this.#viewers.find((other) => other.socket === socket);
    if (typeof data !== "string") return viewer && this.#handleInput(viewer, data);
    const message = readClientMessage(JSON.parse(data));
    switch (message?.type) {
      case "hello":
        this.hellos.push(message);
        return this.#attach(socket, message.client, message.conn, message.cursor);
      case "ack":
        if (viewer) viewer.acked = message.output;
        this.acks.push(message.output);
        return this.#sendOutput();
      case "ping":
        return socket.deliver(JSON.stringify({ type: "pong", n: message.n }));
      case "command":
        if (!this.commands.includes(message.id)) this.commands.push(message.id);
        return socket.deliver(JSON.stringify({ type: "accepted", id: message.id, seq: 1, duplicate: false }));
      case "resize":
      case "claim_size":
        this.size = { cols: message.cols, rows: message.rows };
        return this.broadcast({ type: "resize", ...this.size });
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
    socket.deliver(JSON.stringify(attached));
    if (!exact) {
      for (let at = 0; at < offset; at += CHUNK) {
        socket.deliver(
          encodeBinary({ kind: "snapshot", bytes: Uint8Array.from(this.log.slice(at, Math.min(at + CHUNK, offset))) }),
        );
      }
    }
    this.#viewers.push({ socket, client, next: offset, acked: exact ? offset : offset - this.window });
    this.#sendOutput();
  }

  #handleInput(viewer: Viewer, data: Uint8Array): void {
    const binary = decodeBinary(data);
    if (binary.kind !== "input") throw new Error(`a client must send input, not ${binary.kind}`);
    const expected = this.#inputs.get(viewer.client) ?? 0;
    if (binary.offset > expected)
      throw new Error(`hole in the input: expected offset ${expected}, received ${binary.offset}`);
    const fresh = binary.bytes.subarray(expected - binary.offset);
    this.typed.push(...fresh);
    this.#inputs.set(viewer.client, expected + fresh.length);
    viewer.socket.deliver(JSON.stringify({ type: "ack", input: expected + fresh.length }));
  }

  /** Sends as much output as the window allows; a viewer that does not acknowledge gets no more. */
  #sendOutput(): void {
    for (const viewer of this.#viewers) {
      while (viewer.next < this.log.length && viewer.next - viewer.acked < this.window) {
        const bytes = Uint8Array.from(this.log.slice(viewer.next, viewer.next + CHUNK));
        viewer.socket.deliver(encodeBinary({ kind: "output", offset: viewer.next, bytes }));
        viewer.next += bytes.length;
      }
      if (this.exit && viewer.next === this.log.length) {
        const { socket } = viewer;
        socket.deliver(JSON.stringify({ type: "exit", code: this.exit.code, signal: null, offset: this.log.length }));
        this.#world.later(() => socket.cut({ kind: "code", code: 1000, reason: "", done: false }), 1_000);
      }
    }
  }

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
