/** The list of sessions over many connections, with the same driver as a terminal. */
import { describe, expect, test } from "vitest";
import { type ConnectionError, EventsConnection, type SessionInfo } from "../src/index.js";
import { Session } from "./sim/session.js";
import { type FakeSocket, World } from "./sim/world.js";

const CLIENT = "00000000-0000-4000-8000-000000000001";

function open(key?: string) {
  const world = new World();
  const { info } = new Session(world);
  const received: unknown[] = [];
  const events: unknown[] = [];
  const errors: ConnectionError[] = [];
  let sessions: readonly SessionInfo[] = [];
  const send = (socket: FakeSocket, message: object) => socket.deliver(JSON.stringify(message));
  world.onDial = (socket) => world.later(() => socket.accept());
  world.peer = {
    opened: (socket) => {
      send(socket, { type: "welcome", client: CLIENT, epoch: "e1", version: "0.1.0", heartbeat: 20_000 });
      send(socket, { type: "board", sessions: [info], approvals: [] });
    },
    received: (socket, data) => {
      const message = JSON.parse(data as string);
      received.push(message);
      if (message.type === "ping") send(socket, { type: "pong", n: message.n });
    },
    closed: () => {},
  };
  const connection = new EventsConnection({
    environment: world.environment,
    target: () => ({ url: "ws://test/", protocols: [], ...(key === undefined ? {} : { key }) }),
    on: {
      state: ({ name }) => events.push(name),
      welcome: ({ epoch }) => events.push(`welcome ${epoch}`),
      board: (board) => {
        sessions = board;
        events.push(board.map(({ name }) => name));
      },
      session: ({ title }) => events.push(`session ${title}`),
      sessionGone: (id) => events.push(`gone ${id}`),
      error: (error) => {
        errors.push(error);
        events.push(error.code === undefined ? "error" : `error ${error.code}`);
      },
    },
  });
  return { world, info, received, events, errors, connection, send, sessions: () => sessions };
}

describe("the event stream", () => {
  test("starts with welcome and the whole board, then sends changes; unknown messages are ignored", async () => {
    const { world, info, events, received, send } = open();
    await world.advance(100);
    expect(events).toEqual(["open", "welcome e1", ["build"]]);
    const socket = world.live[0]!;
    send(socket, { type: "session", session: { ...info, title: "make" } });
    send(socket, { type: "projects", projects: [] });
    send(socket, { type: "session_gone", id: info.id });
    send(socket, { type: "error", code: "bad_request", message: "no" });
    await world.advance(100);
    expect(events.slice(3)).toEqual(["session make", `gone ${info.id}`, "error bad_request"]);
    expect(received).toEqual([]);
  });

  test("a session with values from a newer server is listed with the others", async () => {
    const { world, info, events, connection, send } = open();
    await world.advance(100);
    const odd = {
      ...info,
      name: "odd",
      kind: "notebook",
      state: "paused",
      call: { at: info.created, kind: "light", text: "" },
    };
    send(world.live[0]!, { type: "board", sessions: [odd, info], approvals: [] });
    await world.advance(100);
    expect(events.slice(3)).toEqual([["odd", "build"]]);
    expect(connection.state.name).toBe("open");
  });

  test("a session of an unknown kind is parsed, with defaults for missing fields", async () => {
    const { world, info, events, connection, send, sessions } = open();
    await world.advance(100);
    const {
      argv: _argv,
      size: _size,
      title: _title,
      clients: _clients,
      offset: _offset,
      degraded: _degraded,
      ...rest
    } = info;
    const other = { ...rest, name: "other", kind: "hologram" };
    send(world.live[0]!, { type: "board", sessions: [other, info], approvals: [] });
    send(world.live[0]!, { type: "session", session: other });
    await world.advance(100);
    expect(events.slice(3)).toEqual([["other", "build"], "session "]);
    expect(sessions()[0]).toEqual({ ...other, kind: "unknown", title: "", clients: 0, offset: 0, degraded: false });
    expect(connection.state.name).toBe("open");
  });

  test("a session that cannot be parsed is reported as an error; the others and the connection stay", async () => {
    const { world, info, events, errors, connection, send } = open();
    await world.advance(100);
    const odd = { ...info, id: "a3v9x0q2m7bb", state: 7 };
    send(world.live[0]!, { type: "board", sessions: [odd, info, { ...info, id: "../etc" }, null], approvals: [] });
    await world.advance(100);
    expect(events.slice(3)).toEqual(["error", "error", "error", ["build"]]);
    expect(errors.map(({ source, session }) => [source, session])).toEqual([
      ["session", odd.id],
      ["session", undefined],
      ["session", undefined],
    ]);
    expect(errors[0]!.message).toBe("cannot read session a3v9x0q2m7bb: state: expected a string, found 7");
    expect(errors[1]!.message).toMatch(/^cannot read a session with an unknown id: id: expected a session id/);
    expect(connection.state.name).toBe("open");
    expect(world.sockets).toHaveLength(1);
  });

  test("a change that cannot be parsed is reported as an error and skipped; the next one is applied", async () => {
    const { world, info, events, errors, connection, send } = open();
    await world.advance(100);
    send(world.live[0]!, { type: "session", session: { ...info, title: 7 } });
    send(world.live[0]!, { type: "session", session: { ...info, title: "make" } });
    await world.advance(100);
    expect(events.slice(3)).toEqual(["error", "session make"]);
    expect(errors).toMatchObject([
      { source: "session", session: info.id, message: expect.stringContaining("title: expected a string") },
    ]);
    expect(connection.state.name).toBe("open");
    expect(world.sockets).toHaveLength(1);
  });

  test("a browser sends its key first", async () => {
    const { world, received } = open("K");
    await world.advance(100);
    expect(received).toEqual([{ type: "hello", key: "K" }]);
  });

  test("both sides send heartbeats; a silent connection is replaced, and the new one sends the whole board", async () => {
    const { world, events, received, send } = open();
    await world.advance(100);
    send(world.live[0]!, { type: "ping", n: 7 });
    await world.advance(20_100);
    expect(received).toEqual([
      { type: "pong", n: 7 },
      { type: "ping", n: 1 },
    ]);
    world.live[0]!.zombie = true;
    await world.advance(46_000);
    expect(events.slice(3)).toEqual(["reconnecting", "open", "welcome e1", ["build"]]);
  });

  test("R12: a wake probes the connection", async () => {
    const { world } = open();
    await world.advance(100);
    world.live[0]!.zombie = true;
    world.signal("visible");
    await world.advance(3_000);
    expect(world.sockets).toHaveLength(2);
  });

  test.each([
    "not json",
    '{"type":"board","sessions":{}}',
    '{"type":"session_gone","id":"../etc"}',
    new Uint8Array([1]),
  ])("an invalid frame ends the connection: %s", async (data) => {
    const { world, connection } = open();
    await world.advance(100);
    world.live[0]!.deliver(data);
    await world.advance(100);
    expect(connection.state.name).toBe("reconnecting");
    await world.advance(1_000);
    expect(connection.state.name).toBe("open");
  });

  test("no welcome within 15 s ends the connection", async () => {
    const { world, connection } = open();
    world.peer = { opened: () => {}, received: () => {}, closed: () => {} };
    await world.advance(15_100);
    expect(connection.state).toMatchObject({ name: "reconnecting", attempt: 1 });
  });

  test("R15: dispose removes every listener and timer", async () => {
    const { world, connection, events } = open();
    await world.advance(100);
    connection.dispose();
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    const { length } = events;
    connection.retry();
    await world.advance(100_000);
    expect(events).toHaveLength(length);
  });
});
