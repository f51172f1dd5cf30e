/** The board over many connections, by the same driver as the terminal. */
import { describe, expect, test } from "vitest";
import { type ConnectionError, EventsConnection, type SessionInfo } from "../src/index.js";
import { Session } from "./sim/session.js";
import { type FakeSocket, World } from "./sim/world.js";

const CLIENT = "00000000-0000-4000-8000-000000000001";

function open(key?: string) {
  const world = new World();
  const { info } = new Session(world);
  const heard: unknown[] = [];
  const told: unknown[] = [];
  const errors: ConnectionError[] = [];
  let sessions: readonly SessionInfo[] = [];
  const give = (socket: FakeSocket, message: object) => socket.give(JSON.stringify(message));
  world.dialled = (socket) => world.later(() => socket.accept());
  world.peer = {
    opened: (socket) => {
      give(socket, { type: "welcome", client: CLIENT, epoch: "e1", version: "0.1.0", heartbeat: 20_000 });
      give(socket, { type: "board", sessions: [info], approvals: [] });
    },
    received: (socket, data) => {
      const message = JSON.parse(data as string);
      heard.push(message);
      if (message.type === "ping") give(socket, { type: "pong", n: message.n });
    },
    left: () => {},
  };
  const connection = new EventsConnection({
    environment: world.environment,
    target: () => ({ url: "ws://test/", protocols: [], ...(key === undefined ? {} : { key }) }),
    on: {
      state: ({ name }) => told.push(name),
      welcome: ({ epoch }) => told.push(`welcome ${epoch}`),
      board: (received) => {
        sessions = received;
        told.push(received.map(({ name }) => name));
      },
      session: ({ title }) => told.push(`session ${title}`),
      sessionGone: (id) => told.push(`gone ${id}`),
      error: (error) => {
        errors.push(error);
        told.push(error.code === undefined ? "error" : `error ${error.code}`);
      },
    },
  });
  return { world, info, heard, told, errors, connection, give, sessions: () => sessions };
}

describe("the event stream", () => {
  test("welcome, the whole board, then changes; unknown messages are ignored", async () => {
    const { world, info, told, heard, give } = open();
    await world.advance(100);
    expect(told).toEqual(["open", "welcome e1", ["build"]]);
    const socket = world.live[0]!;
    give(socket, { type: "session", session: { ...info, title: "make" } });
    give(socket, { type: "projects", projects: [] });
    give(socket, { type: "session_gone", id: info.id });
    give(socket, { type: "error", code: "bad_request", message: "no" });
    await world.advance(100);
    expect(told.slice(3)).toEqual(["session make", `gone ${info.id}`, "error bad_request"]);
    expect(heard).toEqual([]);
  });

  test("a session of a later time does not hide the others", async () => {
    const { world, info, told, connection, give } = open();
    await world.advance(100);
    const odd = {
      ...info,
      name: "odd",
      kind: "notebook",
      state: "paused",
      call: { at: info.created, kind: "light", text: "" },
    };
    give(world.live[0]!, { type: "board", sessions: [odd, info], approvals: [] });
    await world.advance(100);
    expect(told.slice(3)).toEqual([["odd", "build"]]);
    expect(connection.state.name).toBe("open");
  });

  test("a session of a kind without a terminal is read, with defaults for what it leaves out", async () => {
    const { world, info, told, connection, give, sessions } = open();
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
    give(world.live[0]!, { type: "board", sessions: [other, info], approvals: [] });
    give(world.live[0]!, { type: "session", session: other });
    await world.advance(100);
    expect(told.slice(3)).toEqual([["other", "build"], "session "]);
    expect(sessions()[0]).toEqual({ ...other, kind: "unknown", title: "", clients: 0, offset: 0, degraded: false });
    expect(connection.state.name).toBe("open");
  });

  test("a session that cannot be read is told as an error, and costs neither the others nor the connection", async () => {
    const { world, info, told, errors, connection, give } = open();
    await world.advance(100);
    const odd = { ...info, id: "a3v9x0q2m7bb", state: 7 };
    give(world.live[0]!, { type: "board", sessions: [odd, info, { ...info, id: "../etc" }, null], approvals: [] });
    await world.advance(100);
    expect(told.slice(3)).toEqual(["error", "error", "error", ["build"]]);
    expect(errors.map(({ source, session }) => [source, session])).toEqual([
      ["session", odd.id],
      ["session", undefined],
      ["session", undefined],
    ]);
    expect(errors[0]!.message).toBe("session a3v9x0q2m7bb cannot be read: state: text is expected, not 7");
    expect(errors[1]!.message).toMatch(/^session of unknown id cannot be read: id: a session id/);
    expect(connection.state.name).toBe("open");
    expect(world.sockets).toHaveLength(1);
  });

  test("a change that cannot be read is told as an error and skipped; the next one counts", async () => {
    const { world, info, told, errors, connection, give } = open();
    await world.advance(100);
    give(world.live[0]!, { type: "session", session: { ...info, title: 7 } });
    give(world.live[0]!, { type: "session", session: { ...info, title: "make" } });
    await world.advance(100);
    expect(told.slice(3)).toEqual(["error", "session make"]);
    expect(errors).toMatchObject([
      { source: "session", session: info.id, message: expect.stringContaining("title: text is expected") },
    ]);
    expect(connection.state.name).toBe("open");
    expect(world.sockets).toHaveLength(1);
  });

  test("a browser says its key first", async () => {
    const { world, heard } = open("K");
    await world.advance(100);
    expect(heard).toEqual([{ type: "hello", key: "K" }]);
  });

  test("heartbeats both ways; a silent stream is replaced, and brings the whole board again", async () => {
    const { world, told, heard, give } = open();
    await world.advance(100);
    give(world.live[0]!, { type: "ping", n: 7 });
    await world.advance(20_100);
    expect(heard).toEqual([
      { type: "pong", n: 7 },
      { type: "ping", n: 1 },
    ]);
    world.live[0]!.zombie = true;
    await world.advance(46_000);
    expect(told.slice(3)).toEqual(["reconnecting", "open", "welcome e1", ["build"]]);
  });

  test("R12: woken, it is probed", async () => {
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
  ])("nonsense ends the connection: %s", async (data) => {
    const { world, connection } = open();
    await world.advance(100);
    world.live[0]!.give(data);
    await world.advance(100);
    expect(connection.state.name).toBe("reconnecting");
    await world.advance(1_000);
    expect(connection.state.name).toBe("open");
  });

  test("no welcome in 15 s ends the connection", async () => {
    const { world, connection } = open();
    world.peer = { opened: () => {}, received: () => {}, left: () => {} };
    await world.advance(15_100);
    expect(connection.state).toMatchObject({ name: "reconnecting", attempt: 1 });
  });

  test("R15: dispose removes every listener and timer", async () => {
    const { world, connection, told } = open();
    await world.advance(100);
    connection.dispose();
    expect([world.listeners.size, world.timers.size, world.live.length]).toEqual([0, 0, 0]);
    const { length } = told;
    connection.retry();
    await world.advance(100_000);
    expect(told).toHaveLength(length);
  });
});
