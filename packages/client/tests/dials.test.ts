/** When a connection dials again, when it gives up, and how it finds its target. */
import { describe, expect, test, vi } from "vitest";
import type { ConnectionEnd, Target } from "../src/index.js";
import { attached, CUT, closed } from "./sim/attached.js";
import { Session } from "./sim/session.js";
import { Viewer } from "./sim/viewer.js";
import { World } from "./sim/world.js";

describe("reconnecting", () => {
  test("R3: a killed session: one attempt, then gone", async () => {
    const { world, session, viewer } = await attached();
    session.refuse = closed(4404);
    world.live[0]!.cut(CUT);
    await world.advance(600_000);
    expect(world.sockets).toHaveLength(2);
    expect(viewer.stateNames).toEqual(["open", "reconnecting", "gone"]);
    expect([world.listeners.size, world.timers.size]).toEqual([0, 0]);
  });

  test("R7, R17: after the last attempt it stays offline until the page is online again", async () => {
    const { world, session, viewer, connection } = await attached({ backoff: { base: 500, cap: 1000, tries: 3 } });
    session.refuse = CUT;
    world.live[0]!.cut(CUT);
    await world.advance(600_000);
    expect(connection.state).toEqual({ name: "offline", reason: "the server cannot be reached" });
    expect(world.sockets).toHaveLength(4);
    expect(world.timers.size).toBe(0);
    session.refuse = undefined;
    world.signal("online");
    await world.advance(100);
    expect(connection.state.name).toBe("open");
    expect(viewer.states.filter(({ name }) => name === "offline")).toHaveLength(1);
  });

  test("R8: a server that accepts and closes is not dialled forever", async () => {
    const { world, session, connection } = await attached();
    session.refuse = closed(1011);
    world.live[0]!.cut(CUT);
    await world.advance(600_000);
    expect(connection.state).toEqual({ name: "offline", reason: "the server closed it with code 1011" });
    expect(world.sockets.length).toBe(13);
  });

  test("R14: a delay longer than setTimeout supports is waited for with several timers", async () => {
    const [base, cap] = [2_200_000_000, 2_200_000_000];
    const { world, connection } = await attached({ backoff: { base, cap, tries: 1 } });
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(connection.state.name).toBe("reconnecting");
    const longest = 2 ** 31 - 1;
    const [timer] = [...world.timers.values()];
    expect(timer!.at - world.now).toBeLessThanOrEqual(longest);
    // After the first timer, a second one waits for the rest.
    const dials = world.sockets.length;
    await world.advance(longest);
    expect([world.sockets.length, world.timers.size]).toEqual([dials, 1]);
    await world.advance(2_200_000_000 - longest);
    expect(world.sockets.length).toBe(dials + 1);
  });

  test("after 4429, not even a wake dials before the time that the server demands", async () => {
    const { world, session } = await attached();
    session.refuse = closed(4429, "retry_after=8");
    world.live[0]!.cut(CUT);
    await world.advance(1_000);
    const dials = world.sockets.length;
    world.signal("visible");
    await world.advance(5_000);
    expect(world.sockets).toHaveLength(dials);
    await world.advance(3_000);
    expect(world.sockets).toHaveLength(dials + 1);
  });

  test("R7: the Retry-After of a proxy is limited to 5 minutes, and retry() dials at once", async () => {
    const { world, session, connection } = await attached();
    session.refuse = { kind: "refused", status: 503, fromGateway: false, retryAfter: 86_400_000 };
    world.live[0]!.cut(CUT);
    await world.advance(1_000);
    const dials = world.sockets.length;
    await world.advance(298_000);
    expect(world.sockets).toHaveLength(dials);
    await world.advance(2_000);
    expect(world.sockets).toHaveLength(dials + 1);
    session.refuse = undefined;
    connection.retry();
    await world.advance(100);
    expect(connection.state.name).toBe("open");
  });

  test("4401 waits for a login, then resumes", async () => {
    const { world, session, viewer, connection } = await attached();
    session.refuse = closed(4401);
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(connection.state.name).toBe("needs-login");
    const dials = world.sockets.length;
    for (const signal of ["visible", "online", "resumed", "restored"] as const) world.signal(signal);
    await world.advance(100_000);
    expect(world.sockets).toHaveLength(dials);
    session.refuse = undefined;
    session.print([4]);
    connection.retry();
    await world.advance(100);
    expect(connection.state.name).toBe("open");
    expect(viewer.shown).toEqual([1, 2, 3, 4]);
  });
});

describe("the target", () => {
  test("R14: a builder that fails is reported and called again", async () => {
    const world = new World();
    new Session(world);
    let fail = true;
    const target = () => {
      if (fail) throw new Error("no ticket today");
      return { url: "ws://test/", protocols: [] };
    };
    const viewer = new Viewer(world, { target });
    await world.advance(400);
    expect(viewer.errors).toMatchObject([
      { source: "target", message: "cannot determine where to connect: no ticket today" },
    ]);
    expect(viewer.connection.state).toMatchObject({ name: "reconnecting", attempt: 1 });
    fail = false;
    await world.advance(1_000);
    expect(viewer.connection.state.name).toBe("open");
  });

  test("R14: a builder that hangs times out, and its late result is ignored", async () => {
    const world = new World();
    new Session(world);
    const hung: ((target: Target) => void)[] = [];
    const viewer = new Viewer(world, { target: () => new Promise((resolve) => hung.push(resolve)) });
    await world.advance(16_000);
    expect(viewer.errors).toMatchObject([{ source: "target", message: expect.stringContaining("took too long") }]);
    expect(hung).toHaveLength(2);
    hung[0]!({ url: "ws://late/", protocols: [] });
    await world.advance(100);
    expect(world.sockets).toHaveLength(0);
    hung[1]!({ url: "ws://test/", protocols: [] });
    await world.advance(100);
    expect(viewer.connection.state.name).toBe("open");
  });

  test("a refused ticket request counts like a refused dial", async () => {
    const world = new World();
    const refusal = Object.assign(new Error("no"), { closed: { kind: "refused", status: 401, fromGateway: true } });
    const viewer = new Viewer(world, { target: () => Promise.reject(refusal) });
    await world.advance(100);
    expect(viewer.connection.state.name).toBe("needs-login");
  });

  test("4425 requests a fresh ticket", async () => {
    const world = new World();
    const session = new Session(world);
    const requests: boolean[] = [];
    const target = ({ freshTicket }: { freshTicket: boolean }) => {
      requests.push(freshTicket);
      return { url: "ws://test/", protocols: [] };
    };
    session.refuse = closed(4425);
    new Viewer(world, { target });
    await world.advance(100);
    session.refuse = undefined;
    await world.advance(1_000);
    expect(requests).toEqual([false, true]);
  });

  test("R3: if the socket does not report why the upgrade was refused, `explain` is called", async () => {
    const world = new World();
    const session = new Session(world);
    session.refuse = CUT;
    const explain = vi.fn(async (): Promise<ConnectionEnd> => ({ kind: "refused", status: 404, fromGateway: true }));
    const viewer = new Viewer(world, { target: () => ({ url: "ws://test/", protocols: [], explain }) });
    await world.advance(100);
    expect(viewer.connection.state).toMatchObject({ name: "gone", why: "unknown" });
    expect(explain).toHaveBeenCalledTimes(1);
  });

  test("a socket that cannot be created is reported", async () => {
    const world = new World();
    world.onDial = () => {
      throw new SyntaxError("bad URL");
    };
    const viewer = new Viewer(world);
    await world.advance(100);
    expect(viewer.errors).toMatchObject([{ source: "socket", message: "cannot create a WebSocket: bad URL" }]);
    expect(viewer.connection.state.name).toBe("reconnecting");
  });

  test("the hello of each dial has the current key, also after a new login", async () => {
    let key = "one";
    const target = () => ({ url: "ws://test/", protocols: [], key });
    const { world, session } = await attached({ target });
    key = "two";
    world.live[0]!.cut(CUT);
    await world.advance(2_000);
    expect(session.hellos.map((hello) => hello.key)).toEqual(["one", "two"]);
    expect(session.hellos.map((hello) => hello.conn)).toEqual([1, 2]);
  });
});
