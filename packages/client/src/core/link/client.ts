/** A viewer's end of the link: its position in the output, its input, and what it has to send. */
import { MALFORMED, TIMED_OUT } from "../close.js";
import { OUTBOX, RENDERED_EVERY, UNPOLLED, UNSENT_AFTER } from "../config.js";
import { decodeBinary, encodeBinary, type Frame } from "../frame.js";
import { readServerMessage } from "../message.js";
import type { Attached, ClientMessage, Cursor, Lag, ServerMessage, Size, Permissions } from "../wire.js";
import { Commands } from "./commands.js";
import type { Protocol, Transmit } from "./protocol.js";
import { byteLength, type ClientEvent, type ClientState, isReplayed } from "./event.js";
import { type ClientConfig, makeHello } from "./hello.js";
import { Liveness } from "./liveness.js";
import { Outbox, type Unsent } from "./outbox.js";
import { OutputAcks } from "./output_acks.js";

/** Why input or a command was refused: too much is waiting already, the viewer may not type, or the link has ended. */
export type SubmitError = "full" | "read-only" | "ended";

/** A viewer's end of the link, over all its connections. */
export class Client implements Protocol {
  readonly #config: ClientConfig;
  readonly #lag: Lag;
  readonly #renderedEvery: number;
  readonly #outbox: Outbox;
  readonly #liveness = new Liveness();
  readonly #commands = new Commands();
  #state: ClientState = "detached";
  #dials = 0;
  #key: string | undefined;
  #size: Size | undefined;
  /** The position of what the caller was given, from which the next connection resumes. */
  #cursor: Cursor | undefined;
  /** The session's epoch on this connection. */
  #epoch: string | undefined;
  /** The offset of the next output byte on this connection. */
  #next = 0;
  /** The snapshot that is being received, with the number of bytes that remain. */
  #incoming: { offset: number; remaining: number } | undefined;
  #you: Permissions;
  #acks: OutputAcks;
  /** Since when input cannot be sent. Includes a sleep, also if the loss is noticed only afterwards. */
  #offlineSince: number | undefined;
  #pendingResize: Size | undefined;
  #claimPending = false;
  #repaintPending = false;
  /** The width of the caller's terminal. */
  #cols: number | undefined;
  /** The width changed and no snapshot has followed; the connection may have been lost in between. */
  #needsRepaint = false;
  #helloPending = false;
  #pendingClose: { code: number; reason: string } | undefined;
  /** Whether this connection is still read from and written to. */
  #active = false;
  #events: ClientEvent[] = [];
  /** The bytes in `#events`. */
  #unpolled = 0;
  #now = 0;

  constructor(config: ClientConfig) {
    this.#config = config;
    this.#lag = config.lag ?? "skip";
    this.#renderedEvery = config.renderedEvery ?? RENDERED_EVERY;
    this.#outbox = new Outbox(config.outbox ?? OUTBOX, config.unsent);
    this.#acks = new OutputAcks(this.#renderedEvery);
    this.#size = config.size;
    this.#cursor = config.cursor;
    this.#epoch = config.cursor?.epoch;
    this.#you = { write: !config.observe, size: false };
  }

  /** The viewer's position in the output; `undefined` until the first snapshot is complete, and during a snapshot. */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  get state(): ClientState {
    return this.#state;
  }

  /** Whether this viewer may type and owns the size, as of the server's last message about it. */
  get you(): Permissions {
    return this.#you;
  }

  /** The number of typed bytes that the server has not acknowledged. */
  get queuedBytes(): number {
    return this.#outbox.length;
  }

  /** Unsent bytes that the user has not decided about, if there are any. */
  get unsent(): Unsent | undefined {
    const { undecided } = this.#outbox;
    return undecided.bytes.length > 0 ? undecided : undefined;
  }

  get attached(): boolean {
    return this.#state === "attached";
  }

  /**
   * A transport is open; the hello is sent first. Output of earlier connections that was not polled is dropped, because the
   * server sends it again from the cursor on.
   */
  handleConnected(now: number, key?: string): void {
    this.#tick(now);
    if (this.#state === "ended") return;
    this.#disconnect();
    this.#events = this.#events.filter((event) => !isReplayed(event));
    this.#unpolled = 0;
    this.#dials += 1;
    this.#key = key;
    this.#liveness.handleConnected(this.#now);
    this.#helloPending = true;
    this.#active = true;
    this.#pendingResize = undefined;
    this.#setState("greeting");
  }

  handleDisconnected(now: number): void {
    this.#tick(now);
    this.#disconnect();
    if (this.#state !== "ended") this.#setState("detached");
  }

  #disconnect(): void {
    if (this.#state === "attached") {
      this.#offlineSince = Math.min(this.#now, this.#liveness.lossBound(this.#outbox.unackedSince));
    }
    this.#outbox.handleDisconnected();
    this.#liveness.handleDisconnected();
    this.#commands.handleDisconnected();
    this.#helloPending = this.#repaintPending = false;
    this.#active = false;
    this.#pendingClose = undefined;
    this.#incoming = undefined;
    this.#acks = new OutputAcks(this.#renderedEvery);
  }

  /** Queues typed bytes until the server acknowledges them: all of them, or none and returns the reason. */
  handleInput(bytes: Uint8Array, now: number): SubmitError | undefined {
    this.#tick(now);
    if (this.#state === "ended") return "ended";
    if (!this.#you.write) return "read-only";
    if (this.#state !== "attached" && this.#outbox.length === 0) this.#offlineSince ??= this.#now;
    return this.#outbox.push(bytes) ? undefined : "full";
  }

  /** The terminal has processed everything up to `offset`. */
  handleRendered(offset: number): void {
    if (this.#state === "attached") this.#acks.handleRendered(offset, this.#now);
  }

  /** The window was resized. The terminal changes its size only when the server says so. */
  handleResize(size: Size): void {
    this.#size = size;
    // If the hello is not sent yet, it will contain the size. Otherwise a `resize` follows.
    this.#pendingResize = this.#helloPending ? undefined : size;
  }

  /** Requests to become the size owner. */
  claimSize(size: Size): void {
    this.#size = size;
    this.#claimPending = true;
  }

  /** Requests the visible screen again. */
  repaint(): void {
    this.#repaintPending = this.#state === "attached";
  }

  /** Queues a command. It is repeated on each new connection until it is answered. Returns the reason if it is refused. */
  command(id: string, command: unknown, now: number): SubmitError | undefined {
    this.#tick(now);
    if (this.#state === "ended") return "ended";
    if (!this.#commands.push({ id, command })) return "full";
    if (this.#state !== "attached") this.#offlineSince ??= this.#now;
    return undefined;
  }

  /** Queues the bytes of the last `unsent` event, and no others, for sending. Does nothing once the link has ended. */
  sendUnsent(now: number): void {
    this.#tick(now);
    if (this.#state === "ended") return;
    if (this.#state !== "attached") this.#offlineSince ??= this.#now;
    this.#outbox.sendUnsent();
  }

  /** Drops the bytes of the last `unsent` event. */
  discardUnsent(): void {
    this.#outbox.discardUnsent();
  }

  handleEnded(now: number): void {
    this.#tick(now);
    this.#end();
  }

  handleWake(now: number): void {
    const slept = Math.max(now - this.#now, 0);
    this.#tick(now);
    if (!this.#active) return;
    const why = this.#liveness.handleWake(slept, this.#now);
    if (why !== undefined) this.#abort(TIMED_OUT, why);
  }

  handleTimeout(now: number): void {
    this.#tick(now);
    if (!this.#active) return;
    const why = this.#liveness.handleTimeout(this.#now, this.#livenessContext());
    if (why !== undefined) this.#abort(TIMED_OUT, why);
  }

  pollTimeout(): number | undefined {
    if (!this.#active) return undefined;
    const due = this.#acks.due;
    const ack = due !== undefined && due > this.#now ? due : Infinity;
    return Math.min(this.#liveness.pollTimeout(this.#livenessContext()), ack);
  }

  #livenessContext() {
    return { greeting: this.#state === "greeting", unackedSince: this.#outbox.unackedSince };
  }

  /** The next event, oldest first. The cursor moves with it, so the caller must apply every event. */
  pollEvent(): ClientEvent | undefined {
    const event = this.#events.shift();
    if (event === undefined) {
      const unsent = this.#outbox.pollUnsent();
      return unsent && { kind: "unsent", unsent };
    }
    this.#unpolled = Math.max(this.#unpolled - byteLength(event), 0);
    switch (event.kind) {
      case "attached":
        if (event.attached.snapshot) break;
        this.#moveTo(event.attached.offset);
        this.#applySize(event.attached.size);
        // The snapshot that follows a change of width may have been lost with the old connection.
        this.#repaintPending ||= this.#needsRepaint && this.#state === "attached";
        break;
      case "snapshot_begin":
        // While a snapshot is incomplete, the terminal shows no known position.
        this.#cursor = undefined;
        this.#cols = event.size.cols;
        break;
      case "snapshot_end":
        this.#needsRepaint = false;
        this.#moveTo(event.offset);
        break;
      case "resize":
        this.#applySize(event.size);
        break;
      case "output":
        this.#moveTo(event.offset + event.bytes.length);
        break;
      default:
    }
    return event;
  }

  #moveTo(offset: number): void {
    this.#acks.polled = offset;
    this.#cursor = this.#epoch === undefined ? undefined : { epoch: this.#epoch, offset };
  }

  #applySize(size: Size): void {
    const changed = this.#cols !== undefined && this.#cols !== size.cols;
    this.#cols = size.cols;
    this.#needsRepaint ||= changed && this.#lag === "skip";
  }

  /** An invalid frame ends the connection; the next connection resumes from the cursor. */
  handleFrame(frame: Frame, now: number): void {
    this.#tick(now);
    if (!this.#active) return;
    this.#liveness.handleReceived(this.#now);
    if (typeof frame === "string") {
      const message = attempt(() => readServerMessage(JSON.parse(frame)));
      if ("error" in message) this.#abort(MALFORMED, "a malformed message");
      else if (message.value) this.#readMessage(message.value);
    } else {
      const binary = attempt(() => decodeBinary(frame));
      if ("error" in binary || binary.value.kind === "input") this.#abort(MALFORMED, "a malformed payload");
      else if (binary.value.kind === "output") this.#readOutput(binary.value.offset, binary.value.bytes);
      else this.#readPart(binary.value.bytes);
    }
    if (this.#unpolled > UNPOLLED) this.#abort(MALFORMED, "more output than the window allows");
  }

  #readMessage(message: ServerMessage): void {
    const inOrder = this.#state === "attached" && this.#incoming === undefined;
    switch (message.type) {
      case "attached":
        return this.#readAttached(message);
      case "ping":
        return this.#liveness.handlePing(message.n);
      case "pong":
        return;
      case "resize":
        if (!inOrder) return this.#abort(MALFORMED, "a message out of order");
        this.#events.push({ kind: "resize", size: { cols: message.cols, rows: message.rows } });
        return;
      case "snapshot": {
        if (this.#state !== "attached") return this.#abort(MALFORMED, "a message out of order");
        if (!inOrder || message.offset < this.#next)
          return this.#abort(MALFORMED, "a snapshot of an earlier offset, or inside another snapshot");
        const { reason, scope, missed, offset, size, bytes } = message;
        return this.#beginSnapshot({ kind: "snapshot_begin", reason, scope, missed, offset, size, bytes });
      }
      case "ack":
        if (this.#state === "attached" && !this.#outbox.handleAck(message.input, this.#now)) {
          this.#abort(MALFORMED, "an acknowledgement of input that was never sent");
        }
        return;
      case "exit":
        if (!inOrder) return this.#abort(MALFORMED, "a message out of order");
        if (message.offset !== this.#next) return this.#abort(MALFORMED, "an exit before the last byte");
        this.#events.push({
          kind: "exit",
          status: { code: message.code, signal: message.signal },
          offset: message.offset,
        });
        return this.#end();
      case "accepted":
      case "rejected":
        this.#commands.handleAnswer(message.id);
        break;
      case "presence": {
        const self = message.clients.find((present) => present.client === this.#config.client);
        if (self) this.#you = { ...this.#you, size: self.size };
        break;
      }
      case "close":
        this.#active = false;
        this.#events.push({ kind: "closing", code: message.code, reason: message.reason });
        return;
      default:
    }
    this.#events.push({ kind: "message", message });
    // The server lost track of the input stream. On the next connection, `attached` says where to continue.
    if (message.type === "error" && message.code === "input_hole") this.#abort(MALFORMED, "a hole in the input");
  }

  #readAttached({ type: _, ...attached }: { type: "attached" } & Attached): void {
    if (this.#state !== "greeting") return this.#abort(MALFORMED, "attached twice");
    if (attached.verdict === "exact" && this.#cursor?.offset !== attached.offset) {
      return this.#abort(MALFORMED, "an exact resume from another offset");
    }
    const restarted = this.#epoch !== undefined && this.#epoch !== attached.epoch;
    const absence = this.#now - (this.#offlineSince ?? this.#now);
    const late = absence > (this.#config.unsentAfter ?? UNSENT_AFTER);
    this.#offlineSince = undefined;
    // Input for an earlier epoch must not be typed into this one.
    if (restarted) this.#outbox.withdrawAll();
    this.#outbox.resume(attached.input, late);
    this.#epoch = attached.epoch;
    this.#you = attached.you;
    this.#liveness.heartbeat = Math.max(attached.heartbeat, 1);
    this.#next = attached.offset;
    this.#acks = new OutputAcks(this.#renderedEvery, attached.offset);
    this.#setState("attached");
    this.#events.push({ kind: "attached", attached });
    if (attached.snapshot) {
      const { reason = "fresh", missed, offset, size, snapshot } = attached;
      this.#beginSnapshot({
        kind: "snapshot_begin",
        reason,
        scope: "all",
        missed,
        offset,
        size,
        bytes: snapshot.bytes,
      });
    }
    if (restarted || late) this.#dropCommands();
  }

  #beginSnapshot(begin: Extract<ClientEvent, { kind: "snapshot_begin" }>): void {
    this.#events.push(begin);
    this.#next = begin.offset;
    this.#incoming = { offset: begin.offset, remaining: begin.bytes };
    this.#endSnapshot();
  }

  #readPart(bytes: Uint8Array): void {
    if (!this.#incoming) return this.#abort(MALFORMED, "a snapshot part without a snapshot");
    if (bytes.length > this.#incoming.remaining) return this.#abort(MALFORMED, "a snapshot longer than announced");
    this.#incoming.remaining -= bytes.length;
    this.#unpolled += bytes.length;
    this.#events.push({ kind: "snapshot_part", bytes });
    this.#endSnapshot();
  }

  #endSnapshot(): void {
    if (this.#incoming?.remaining !== 0) return;
    const { offset } = this.#incoming;
    this.#incoming = undefined;
    this.#acks.snapshot = offset;
    this.#events.push({ kind: "snapshot_end", offset });
  }

  /** Trims bytes that were received before. A gap ends the connection. */
  #readOutput(offset: number, bytes: Uint8Array): void {
    if (this.#state !== "attached" || this.#incoming || offset > this.#next) {
      return this.#abort(MALFORMED, "a gap in the output");
    }
    const fresh = bytes.subarray(Math.min(this.#next - offset, bytes.length));
    if (fresh.length === 0) return;
    this.#unpolled += fresh.length;
    this.#events.push({ kind: "output", offset: this.#next, bytes: fresh });
    this.#next += fresh.length;
  }

  /** The next frame to send: the hello first, then messages, then input. */
  pollTransmit(now: number): Transmit | undefined {
    this.#tick(now);
    if (this.#pendingClose) {
      const { code, reason } = this.#pendingClose;
      this.#pendingClose = undefined;
      return { kind: "close", code, reason };
    }
    if (!this.#active) return undefined;
    const message = this.#nextMessage();
    if (message) return { kind: "send", frame: JSON.stringify(message) };
    if (this.#state !== "attached") return undefined;
    const input = this.#outbox.pop(this.#now);
    return input && { kind: "send", frame: encodeBinary({ kind: "input", ...input }) };
  }

  #nextMessage(): ClientMessage | undefined {
    if (this.#helloPending) {
      this.#helloPending = false;
      const now = { conn: this.#dials, cursor: this.#cursor, size: this.#size, key: this.#key };
      return { type: "hello", ...makeHello(this.#config, now) };
    }
    const beat = this.#liveness.pollTransmit();
    if (beat) return beat;
    if (this.#state !== "attached") return undefined;
    if (this.#size && this.#claimPending) {
      this.#claimPending = false;
      this.#pendingResize = undefined;
      return { type: "claim_size", ...this.#size };
    }
    if (this.#pendingResize) {
      const size = this.#pendingResize;
      this.#pendingResize = undefined;
      return { type: "resize", ...size };
    }
    if (this.#repaintPending) {
      this.#repaintPending = false;
      return { type: "repaint" };
    }
    const output = this.#acks.pollAck(this.#now);
    if (output !== undefined) return { type: "ack", output };
    const command = this.#commands.pop();
    return command && { type: "command", ...command };
  }

  #tick(now: number): void {
    this.#now = Math.max(this.#now, now);
  }

  #setState(state: ClientState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#events.push({ kind: "state", state });
  }

  /** Stops using this connection, and makes the driver close it. */
  #abort(code: number, reason: string): void {
    this.#pendingClose = { code, reason };
    this.#active = false;
  }

  #end(): void {
    if (this.#state === "ended") return;
    this.#active = false;
    this.#setState("ended");
    this.#outbox.withdrawAll();
    this.#dropCommands();
  }

  /** Reports all unanswered commands as unsent. */
  #dropCommands(): void {
    for (const { id } of this.#commands.drain()) this.#events.push({ kind: "command_unsent", id });
  }
}

function attempt<T>(read: () => T): { value: T } | { error: unknown } {
  try {
    return { value: read() };
  } catch (error) {
    return { error };
  }
}
