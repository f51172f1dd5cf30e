/** A viewer's end of the link: where it is in the output, what it typed, and what it owes the server. */
import { MALFORMED, SILENT } from "../close.js";
import { OUTBOX, RENDERED_EVERY, UNPOLLED, UNSENT_AFTER } from "../config.js";
import { decodeBinary, encodeBinary, type Frame } from "../frame.js";
import { readServerMessage } from "../message.js";
import type { Attached, ClientMessage, Cursor, Lag, ServerMessage, Size, You } from "../wire.js";
import { Commands } from "./commands.js";
import type { Protocol, Transmit } from "./protocol.js";
import { type ClientEvent, type ClientState, isStream, weight } from "./event.js";
import { type ClientConfig, makeHello } from "./hello.js";
import { Outbox, type Unsent } from "./outbox.js";
import { Pulse } from "./pulse.js";
import { Rendered } from "./rendered.js";

/** Why something was not taken: no more can be kept now, the viewer may not type, the session is over. */
export type NotTaken = "full" | "read-only" | "ended";

/** A viewer's end of its link, over all its connections. */
export class Client implements Protocol {
  readonly #config: ClientConfig;
  readonly #lag: Lag;
  readonly #renderedEvery: number;
  readonly #outbox: Outbox;
  readonly #pulse = new Pulse();
  readonly #commands = new Commands();
  #state: ClientState = "detached";
  #dials = 0;
  #key: string | undefined;
  #size: Size | undefined;
  /** What the caller has been given, and so what a resume may build on. */
  #cursor: Cursor | undefined;
  /** The life that this connection speaks of. */
  #epoch: string | undefined;
  /** The next output byte on this connection. */
  #next = 0;
  /** What is still to come of a snapshot. */
  #painting: { offset: number; left: number } | undefined;
  #you: You;
  #rendered: Rendered;
  /** Since when there is nobody to send input to. A sleep counts, also when the loss is noticed only after it. */
  #away: number | undefined;
  #resize: Size | undefined;
  #claim = false;
  #repaint = false;
  /** The width that the caller's terminal has. */
  #cols: number | undefined;
  /** That width changed, and the owner's screen has not been painted since: a cut took it away. */
  #unpainted = false;
  #hello = false;
  #givingUp: { code: number; reason: string } | undefined;
  /** Nothing more is read from this connection. */
  #deaf = true;
  #events: ClientEvent[] = [];
  #unpolled = 0;
  #now = 0;

  /** A viewer that is not connected yet. */
  constructor(config: ClientConfig) {
    this.#config = config;
    this.#lag = config.lag ?? "skip";
    this.#renderedEvery = config.renderedEvery ?? RENDERED_EVERY;
    this.#outbox = new Outbox(config.outbox ?? OUTBOX, config.unsent);
    this.#rendered = new Rendered(this.#renderedEvery);
    this.#size = config.size;
    this.#cursor = config.cursor;
    this.#epoch = config.cursor?.epoch;
    this.#you = { write: !config.observe, size: false };
  }

  /** Where the viewer is. */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  /** The state of the link. */
  get state(): ClientState {
    return this.#state;
  }

  /** What this viewer may do and is, as far as it knows. */
  get you(): You {
    return this.#you;
  }

  /** Typed bytes that the session has not taken yet. */
  get waiting(): number {
    return this.#outbox.length;
  }

  /** Typed bytes that wait for the user's decision, if any do. */
  get unsent(): Unsent | undefined {
    const { undecided } = this.#outbox;
    return undecided.bytes.length > 0 ? undecided : undefined;
  }

  get attached(): boolean {
    return this.#state === "attached";
  }

  /**
   * A transport is open: say hello on it. What earlier connections brought and was not polled is dropped, for the cursor
   * asks for it again.
   */
  handleConnected(now: number, key?: string): void {
    this.#tick(now);
    if (this.#state === "ended") return;
    this.#disconnect();
    this.#events = this.#events.filter((event) => !isStream(event));
    this.#unpolled = 0;
    this.#dials += 1;
    this.#key = key;
    this.#pulse.handleConnected(this.#now);
    this.#hello = true;
    this.#deaf = false;
    this.#resize = undefined;
    this.#become("greeting");
  }

  handleDisconnected(now: number): void {
    this.#tick(now);
    this.#disconnect();
    if (this.#state !== "ended") this.#become("detached");
  }

  #disconnect(): void {
    if (this.#state === "attached") this.#away = Math.min(this.#now, this.#pulse.answerDue(this.#outbox.waiting));
    this.#outbox.disconnected();
    this.#pulse.handleDisconnected();
    this.#commands.disconnected();
    this.#hello = this.#repaint = false;
    this.#deaf = true;
    this.#givingUp = undefined;
    this.#painting = undefined;
    this.#rendered = new Rendered(this.#renderedEvery);
  }

  /** Keys were typed. They are kept until the server has written them, all of them or none. Returns why not, if so. */
  handleInput(bytes: Uint8Array, now: number): NotTaken | undefined {
    this.#tick(now);
    if (this.#state === "ended") return "ended";
    if (!this.#you.write) return "read-only";
    if (this.#state !== "attached" && this.#outbox.length === 0) this.#away ??= this.#now;
    return this.#outbox.push(bytes) ? undefined : "full";
  }

  /** The terminal took everything up to here. */
  handleRendered(offset: number): void {
    if (this.#state === "attached") this.#rendered.handleRendered(offset, this.#now);
  }

  /** The window has this size now; the terminal follows only on the server's word. */
  handleResize(size: Size): void {
    this.#size = size;
    // Said after `attached`, if the hello is out already.
    this.#resize = this.#hello ? undefined : size;
  }

  /** Ask to be the one whose window decides. */
  claimSize(size: Size): void {
    this.#size = size;
    this.#claim = true;
  }

  /** Ask for the visible screen again. */
  repaint(): void {
    this.#repaint = this.#state === "attached";
  }

  /** Give a command. It is repeated on the next connection until it is answered. Returns why it was not taken, if so. */
  command(id: string, command: unknown, now: number): NotTaken | undefined {
    this.#tick(now);
    if (this.#state === "ended") return "ended";
    if (!this.#commands.push({ id, command })) return "full";
    if (this.#state !== "attached") this.#away ??= this.#now;
    return undefined;
  }

  /** Type what was reported unsent after all: what the last report had, and nothing else. Once the session is over, it stays unsent. */
  sendUnsent(now: number): void {
    this.#tick(now);
    if (this.#state === "ended") return;
    if (this.#state !== "attached") this.#away ??= this.#now;
    this.#outbox.sendUnsent();
  }

  /** Forget what was reported unsent. */
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
    if (this.#deaf) return;
    const why = this.#pulse.handleWake(slept, this.#now);
    if (why !== undefined) this.#giveUp(SILENT, why);
  }

  handleTimeout(now: number): void {
    this.#tick(now);
    if (this.#deaf) return;
    const why = this.#pulse.handleTimeout(this.#now, this.#pulseContext());
    if (why !== undefined) this.#giveUp(SILENT, why);
  }

  pollTimeout(): number | undefined {
    if (this.#deaf) return undefined;
    const due = this.#rendered.due;
    const ack = due !== undefined && due > this.#now ? due : Infinity;
    return Math.min(this.#pulse.pollTimeout(this.#pulseContext()), ack);
  }

  #pulseContext() {
    return { greeting: this.#state === "greeting", waiting: this.#outbox.waiting };
  }

  /** What happened, oldest first. The cursor follows what this returns, so the caller must apply each of them. */
  pollEvent(): ClientEvent | undefined {
    const event = this.#events.shift();
    if (event === undefined) {
      const unsent = this.#outbox.pollUnsent();
      return unsent && { kind: "unsent", unsent };
    }
    this.#unpolled = Math.max(this.#unpolled - weight(event), 0);
    switch (event.kind) {
      case "attached":
        if (event.attached.snapshot) break;
        this.#movedTo(event.attached.offset);
        this.#resizedTo(event.attached.size);
        // The screen that was to follow a change of width may have been lost with the old connection.
        this.#repaint ||= this.#unpainted && this.#state === "attached";
        break;
      case "snapshot_begin":
        // A terminal that is half painted is of no known place.
        this.#cursor = undefined;
        this.#cols = event.size.cols;
        break;
      case "snapshot_end":
        this.#unpainted = false;
        this.#movedTo(event.offset);
        break;
      case "resize":
        this.#resizedTo(event.size);
        break;
      case "output":
        this.#movedTo(event.offset + event.bytes.length);
        break;
      default:
    }
    return event;
  }

  #movedTo(offset: number): void {
    this.#rendered.polled = offset;
    this.#cursor = this.#epoch === undefined ? undefined : { epoch: this.#epoch, offset };
  }

  #resizedTo(size: Size): void {
    const changed = this.#cols !== undefined && this.#cols !== size.cols;
    this.#cols = size.cols;
    this.#unpainted ||= changed && this.#lag === "skip";
  }

  /** A frame came in. One that makes no sense ends the connection; the cursor resumes on the next. */
  handleFrame(frame: Frame, now: number): void {
    this.#tick(now);
    if (this.#deaf) return;
    this.#pulse.handleHeard(this.#now);
    if (typeof frame === "string") {
      const message = attempt(() => readServerMessage(JSON.parse(frame)));
      if ("error" in message) this.#giveUp(MALFORMED, "a malformed message");
      else if (message.value) this.#readMessage(message.value);
    } else {
      const binary = attempt(() => decodeBinary(frame));
      if ("error" in binary || binary.value.kind === "input") this.#giveUp(MALFORMED, "a malformed payload");
      else if (binary.value.kind === "output") this.#readOutput(binary.value.offset, binary.value.bytes);
      else this.#readPart(binary.value.bytes);
    }
    if (this.#unpolled > UNPOLLED) this.#giveUp(MALFORMED, "more than the window");
  }

  #readMessage(message: ServerMessage): void {
    const inOrder = this.#state === "attached" && this.#painting === undefined;
    switch (message.type) {
      case "attached":
        return this.#readAttached(message);
      case "ping":
        return this.#pulse.handlePing(message.n);
      case "pong":
        return;
      case "resize":
        if (!inOrder) return this.#giveUp(MALFORMED, "out of order");
        this.#events.push({ kind: "resize", size: { cols: message.cols, rows: message.rows } });
        return;
      case "snapshot": {
        if (this.#state !== "attached") return this.#giveUp(MALFORMED, "out of order");
        if (!inOrder || message.offset < this.#next) return this.#giveUp(MALFORMED, "a snapshot of the past");
        const { reason, scope, missed, offset, size, bytes } = message;
        return this.#beginSnapshot({ kind: "snapshot_begin", reason, scope, missed, offset, size, bytes });
      }
      case "ack":
        if (this.#state === "attached" && !this.#outbox.ack(message.input, this.#now)) {
          this.#giveUp(MALFORMED, "an ack of what was never sent");
        }
        return;
      case "exit":
        if (!inOrder) return this.#giveUp(MALFORMED, "out of order");
        if (message.offset !== this.#next) return this.#giveUp(MALFORMED, "an exit before the last byte");
        this.#events.push({
          kind: "exit",
          status: { code: message.code, signal: message.signal },
          offset: message.offset,
        });
        return this.#end();
      case "accepted":
      case "rejected":
        this.#commands.answered(message.id);
        break;
      case "presence": {
        const me = message.clients.find((present) => present.client === this.#config.client);
        if (me) this.#you = { ...this.#you, size: me.size };
        break;
      }
      case "close":
        this.#deaf = true;
        this.#events.push({ kind: "closing", code: message.code, reason: message.reason });
        return;
      default:
    }
    this.#events.push({ kind: "message", message });
    // The server lost track of this stream; `attached` on the next connection says where it is.
    if (message.type === "error" && message.code === "input_hole") this.#giveUp(MALFORMED, "a hole in the input");
  }

  #readAttached({ type: _, ...attached }: { type: "attached" } & Attached): void {
    if (this.#state !== "greeting") return this.#giveUp(MALFORMED, "attached twice");
    if (attached.verdict === "exact" && this.#cursor?.offset !== attached.offset) {
      return this.#giveUp(MALFORMED, "exact, but from another place");
    }
    const another = this.#epoch !== undefined && this.#epoch !== attached.epoch;
    const late = this.#away !== undefined && this.#now - this.#away > (this.#config.unsentAfter ?? UNSENT_AFTER);
    this.#away = undefined;
    // What was meant for another life is not typed into this one.
    if (another) this.#outbox.takeAll();
    this.#outbox.resume(attached.input, late);
    this.#epoch = attached.epoch;
    this.#you = attached.you;
    this.#pulse.heartbeat = Math.max(attached.heartbeat, 1);
    this.#next = attached.offset;
    this.#rendered = new Rendered(this.#renderedEvery, attached.offset);
    this.#become("attached");
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
    if (another || late) this.#dropCommands();
  }

  #beginSnapshot(begin: Extract<ClientEvent, { kind: "snapshot_begin" }>): void {
    this.#events.push(begin);
    this.#next = begin.offset;
    this.#painting = { offset: begin.offset, left: begin.bytes };
    this.#endSnapshot();
  }

  #readPart(bytes: Uint8Array): void {
    if (!this.#painting) return this.#giveUp(MALFORMED, "a part of no snapshot");
    if (bytes.length > this.#painting.left) return this.#giveUp(MALFORMED, "a snapshot longer than announced");
    this.#painting.left -= bytes.length;
    this.#unpolled += bytes.length;
    this.#events.push({ kind: "snapshot_part", bytes });
    this.#endSnapshot();
  }

  #endSnapshot(): void {
    if (this.#painting?.left !== 0) return;
    const { offset } = this.#painting;
    this.#painting = undefined;
    this.#rendered.snapshot = offset;
    this.#events.push({ kind: "snapshot_end", offset });
  }

  /** Overlap is trimmed, a hole ends the connection. */
  #readOutput(offset: number, bytes: Uint8Array): void {
    if (this.#state !== "attached" || this.#painting || offset > this.#next) {
      return this.#giveUp(MALFORMED, "a hole in the output");
    }
    const fresh = bytes.subarray(Math.min(this.#next - offset, bytes.length));
    if (fresh.length === 0) return;
    this.#unpolled += fresh.length;
    this.#events.push({ kind: "output", offset: this.#next, bytes: fresh });
    this.#next += fresh.length;
  }

  /** What the connection is to carry next: the hello, then what is urgent, then what was typed. */
  pollTransmit(now: number): Transmit | undefined {
    this.#tick(now);
    if (this.#givingUp) {
      const { code, reason } = this.#givingUp;
      this.#givingUp = undefined;
      return { kind: "close", code, reason };
    }
    if (this.#deaf) return undefined;
    const message = this.#nextMessage();
    if (message) return { kind: "send", frame: JSON.stringify(message) };
    if (this.#state !== "attached") return undefined;
    const input = this.#outbox.pop(this.#now);
    return input && { kind: "send", frame: encodeBinary({ kind: "input", ...input }) };
  }

  #nextMessage(): ClientMessage | undefined {
    if (this.#hello) {
      this.#hello = false;
      const now = { conn: this.#dials, cursor: this.#cursor, size: this.#size, key: this.#key };
      return { type: "hello", ...makeHello(this.#config, now) };
    }
    const beat = this.#pulse.pollTransmit();
    if (beat) return beat;
    if (this.#state !== "attached") return undefined;
    if (this.#size && this.#claim) {
      this.#claim = false;
      this.#resize = undefined;
      return { type: "claim_size", ...this.#size };
    }
    if (this.#resize) {
      const size = this.#resize;
      this.#resize = undefined;
      return { type: "resize", ...size };
    }
    if (this.#repaint) {
      this.#repaint = false;
      return { type: "repaint" };
    }
    const output = this.#rendered.pollAck(this.#now);
    if (output !== undefined) return { type: "ack", output };
    const command = this.#commands.pop();
    return command && { type: "command", ...command };
  }

  #tick(now: number): void {
    this.#now = Math.max(this.#now, now);
  }

  #become(state: ClientState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#events.push({ kind: "state", state });
  }

  #giveUp(code: number, reason: string): void {
    this.#givingUp = { code, reason };
    this.#deaf = true;
  }

  #end(): void {
    if (this.#state === "ended") return;
    this.#deaf = true;
    this.#become("ended");
    this.#outbox.takeAll();
    this.#dropCommands();
  }

  #dropCommands(): void {
    for (const { id } of this.#commands.takeAll()) this.#events.push({ kind: "command_unsent", id });
  }
}

function attempt<T>(read: () => T): { value: T } | { error: unknown } {
  try {
    return { value: read() };
  } catch (error) {
    return { error };
  }
}
