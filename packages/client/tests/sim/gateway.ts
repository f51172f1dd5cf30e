/** A simulated gateway: an event stream that watches journals, and their history. */
import { ApiError, type Api, type ConnectionEnd, type Cursor, type EventPage } from "../../src/index.js";
import type { Journal } from "./journal.js";
import type { FakeSocket, Peer, World } from "./world.js";

/** A session that one stream watches. */
interface Follow {
  cursor: Cursor | undefined;
  answered: boolean;
}

export class Gateway implements Peer, Pick<Api, "history"> {
  readonly journals = new Map<string, Journal>();
  /** If set, dials end like this. */
  refuse: ConnectionEnd | undefined;
  /** If set, requests for history fail with this error. */
  failure: ApiError | undefined;
  /** Milliseconds that a page is on its way to the client. */
  pageLatency = () => 5;
  /** How many events are sent before the stream pauses. */
  burst = () => Infinity;
  /** How many pieces of a text are sent as one event. */
  join = () => 1;
  /** What clients sent, other than heartbeats. */
  readonly messages: any[] = [];
  readonly requests: { readonly query: any; readonly signal: AbortSignal | undefined; settled: boolean }[] = [];
  readonly #streams = new Map<FakeSocket, Map<string, Follow>>();
  readonly #world: World;

  constructor(world: World, ...journals: Journal[]) {
    this.#world = world;
    for (const journal of journals) this.journals.set(journal.id, journal);
    world.peer = this;
    world.onDial = (socket) => world.later(() => (this.refuse ? socket.cut(this.refuse) : socket.accept()));
  }

  /** The sessions that are watched on live connections. */
  get watched(): string[] {
    return this.#world.live.flatMap((socket) => [...(this.#streams.get(socket)?.keys() ?? [])]).sort();
  }

  opened(socket: FakeSocket): void {
    this.#streams.set(socket, new Map());
    const client = "00000000-0000-4000-8000-000000000001";
    this.send({ type: "welcome", client, epoch: "e1", version: "0.1.0", heartbeat: 20_000 }, socket);
    this.send({ type: "board", sessions: [...this.journals.values()].map(description) }, socket);
  }

  received(socket: FakeSocket, data: string | Uint8Array): void {
    const message = JSON.parse(data as string);
    const follows = this.#streams.get(socket);
    if (!follows) return;
    if (message.type === "ping") return this.send({ type: "pong", n: message.n }, socket);
    if (message.type === "pong") return;
    this.messages.push(message);
    if (message.type === "unwatch") for (const id of message.sessions) follows.delete(id);
    if (message.type === "watch") {
      for (const { id, cursor } of message.sessions) follows.set(id, { cursor, answered: false });
    }
    this.pump();
  }

  closed(socket: FakeSocket): void {
    this.#streams.delete(socket);
  }

  /** Sends a message to one client, or to all. */
  send(message: object, ...sockets: FakeSocket[]): void {
    for (const socket of sockets.length ? sockets : this.#world.live) {
      if (socket.state === "open") socket.deliver(JSON.stringify(message));
    }
  }

  /** Sends what streams do not have yet. */
  pump(): void {
    for (const [socket, follows] of this.#streams) {
      for (const [id, follow] of follows) this.#follow(socket, id, follow);
    }
  }

  #follow(socket: FakeSocket, id: string, follow: Follow): void {
    const journal = this.journals.get(id);
    if (!journal || journal.host !== undefined || socket.state !== "open") return;
    const { verdict, reason, seq } = journal.verdict(follow.cursor);
    if (!follow.answered || verdict === "snapshot") {
      const { epoch } = journal;
      this.send({ type: "watched", session: id, epoch, seq, verdict, ...(reason ? { reason } : {}) }, socket);
      follow.cursor = { epoch, offset: seq };
      follow.answered = true;
    }
    const cursor = follow.cursor!;
    for (let left = this.burst(); cursor.offset < journal.end; left--) {
      if (left <= 0) return this.#world.later(() => this.pump());
      const record = journal.record(cursor.offset, journal.end, this.join());
      this.send({ type: "event", session: id, ...record }, socket);
      cursor.offset = record.seq + 1;
      cursor.epoch = (record.event as { epoch?: string }).epoch ?? cursor.epoch;
    }
  }

  /** A session is forgotten. */
  forget(id: string): void {
    this.journals.delete(id);
    this.send({ type: "session_gone", id });
  }

  history(session: string, query: any = {}, signal?: AbortSignal): Promise<EventPage> {
    const request = { query, signal, settled: false };
    this.requests.push(request);
    // As fetch does, an aborted request fails. The page is read now, but arrives later.
    const answer = this.failure ?? this.#page(session, query);
    return new Promise((done, failed) => {
      signal?.addEventListener("abort", () => failed(new ApiError(0, "unreachable", "aborted")));
      this.#world.later(() => {
        request.settled = true;
        if (answer instanceof ApiError) failed(answer);
        else done(answer);
      }, this.pageLatency());
    });
  }

  #page(session: string, query: any): EventPage | ApiError {
    const journal = this.journals.get(session);
    if (!journal) return new ApiError(404, "unknown_session", `no session ${session}`, { fromGateway: true });
    return structuredClone(journal.page(query));
  }
}

/** The description of a session on the board. */
export function description({ id, epoch, end, host }: Journal): any {
  return {
    id,
    ...(host === undefined ? {} : { host }),
    name: null,
    kind: "agent",
    state: "running",
    created: "2026-01-01T00:00:00Z",
    cwd: "/",
    epoch,
    offset: end,
    version: "0.1.0",
    agent: "fake",
  };
}
