/** The HTTP API against a fetch that the test owns. */
import { describe, expect, test } from "vitest";
import { Api, ApiError, type Auth, type Fetch } from "../src/index.js";
import { Session } from "./sim/session.js";
import { World } from "./sim/world.js";

const { info } = new Session(new World());

interface Asked {
  method: string;
  url: string;
  headers: Record<string, string>;
  credentials: string;
  body?: unknown;
}

function api(
  answer: () => Response | Promise<Response>,
  auth: Auth = { kind: "bearer", token: "T" },
  base = "https://host/sub",
) {
  const asked: Asked[] = [];
  const fetch: Fetch = async (url, { method, headers, credentials, body }) => {
    asked.push({ method, url, headers, credentials, ...(body === undefined ? {} : { body: JSON.parse(body) }) });
    return answer();
  };
  return { api: new Api({ base, auth, fetch, timeout: 50 }), asked };
}

const json = (value: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), { status, headers });

describe("requests", () => {
  test("go below the sub-path, let in by the token", async () => {
    const { api: it, asked } = api(() => json({ sessions: [info] }));
    expect(await it.sessions()).toEqual([info]);
    expect(asked).toEqual([
      {
        method: "GET",
        url: "https://host/sub/v1/sessions",
        headers: { Authorization: "Bearer T" },
        credentials: "omit",
      },
    ]);
  });

  test("a session that cannot be read is told, and does not hide the others", async () => {
    const odd = { ...info, id: "a3v9x0q2m7bb", state: 7 };
    const { api: it } = api(() => json({ sessions: [odd, info, 7] }));
    const unreadable: (string | undefined)[] = [];
    expect(await it.sessions(({ id }) => unreadable.push(id))).toEqual([info]);
    expect(unreadable).toEqual([odd.id, undefined]);
    await expect(api(() => json({ sessions: 7 })).api.sessions()).rejects.toMatchObject({ code: "bad_answer" });
  });

  test("a session of a kind without a terminal is read", async () => {
    const { argv: _argv, size: _size, ...rest } = info;
    expect(await api(() => json({ ...rest, kind: "hologram" })).api.session("x")).toEqual({ ...rest, kind: "unknown" });
  });

  test("each has its method, path and body", async () => {
    const { api: it, asked } = api(() => json(info));
    await it.session("a b");
    await it.create({ name: "x", argv: ["sh"] }, "K");
    await it.change("x", { name: "y" });
    await it.end("x");
    await it.end("x", { keep: true });
    await it.restart("x", "9f3c61d2");
    expect(asked.map(({ method, url, body }) => [method, url.slice("https://host/sub/v1/".length), body])).toEqual([
      ["GET", "sessions/a%20b", undefined],
      ["POST", "sessions", { kind: "terminal", name: "x", argv: ["sh"] }],
      ["PATCH", "sessions/x", { name: "y" }],
      ["DELETE", "sessions/x", undefined],
      ["DELETE", "sessions/x?keep=true", undefined],
      ["POST", "sessions/x/restart", { epoch: "9f3c61d2" }],
    ]);
    expect(asked[1]!.headers).toMatchObject({ "Idempotency-Key": "K", "Content-Type": "application/json" });
  });

  test("screen and log are not JSON", async () => {
    expect(await api(() => new Response("$ ls\n")).api.screen("x")).toBe("$ ls\n");
    const headers = { "Content-Range": "bytes 100-102/103" };
    const { api: it, asked } = api(() => new Response(Uint8Array.from([1, 2, 3]), { headers, status: 206 }));
    expect(await it.log("x", { from: 100 })).toEqual({ bytes: Uint8Array.from([1, 2, 3]), from: 100 });
    expect(asked[0]!.url).toMatch(/x\/log\?from=100$/);
  });

  test("a login brings the key, which is sent from then on; a logout forgets it", async () => {
    const { api: it, asked } = api(() => json({ key: "K" }), { kind: "none" });
    expect(await it.login("CODE")).toEqual({ key: "K" });
    expect(it.auth).toEqual({ kind: "browser", key: "K" });
    await it.logout();
    expect(it.auth).toEqual({ kind: "none" });
    expect(asked.map(({ headers, credentials }) => [headers["Bowline-Key"], credentials])).toEqual([
      [undefined, "same-origin"],
      ["K", "same-origin"],
    ]);
  });

  test("tokens", async () => {
    const token = {
      id: "t1",
      kind: "token",
      name: "ci",
      scope: "read",
      created: "2026-11-15T18:00:00Z",
      expires: null,
      used: null,
    };
    expect(await api(() => json({ tokens: [token] })).api.tokens()).toEqual([token]);
    const { api: it, asked } = api(() => json({ id: "t2", token: "S" }, 201));
    expect(await it.createToken({ name: "ci", scope: "write" })).toEqual({ id: "t2", token: "S" });
    await it.revokeToken("t2");
    expect(asked[1]!.url).toMatch(/v1\/tokens\/t2$/);
  });
});

describe("refusals", () => {
  const refused = async (answer: () => Response | Promise<Response>): Promise<ApiError> => {
    const error = await api(answer)
      .api.session("x")
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ApiError);
    return error as ApiError;
  };

  test("a problem has its status, code and words", async () => {
    const headers = { "Bowline-Code": "unknown_session", "Retry-After": "3" };
    const error = await refused(() =>
      json({ code: "unknown_session", title: "No", detail: "no session x" }, 404, headers),
    );
    expect(error).toMatchObject({ status: 404, code: "unknown_session", message: "no session x" });
    expect(error.closed).toEqual({ kind: "refused", status: 404, ours: true, retryAfter: 3000 });
  });

  test("a proxy's page is not ours", async () => {
    const error = await refused(() => new Response("<h1>404</h1>", { status: 404 }));
    expect(error).toMatchObject({ status: 404, code: "http", message: "HTTP status 404", ours: false });
  });

  test("no answer, and an answer that makes no sense", async () => {
    expect(await refused(() => Promise.reject(new TypeError("refused")))).toMatchObject({
      status: 0,
      code: "unreachable",
    });
    expect(await refused(() => json({ id: 7 }))).toMatchObject({
      code: "bad_answer",
      message: expect.stringContaining("id:"),
    });
  });

  test("R14: a request that hangs is given up", async () => {
    const fetch: Fetch = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    const it = new Api({ base: "http://host/", auth: { kind: "none" }, fetch, timeout: 1 });
    await expect(it.sessions()).rejects.toMatchObject({ status: 0, message: expect.stringContaining("no answer") });
  });

  test("R14: so is one whose answer begins and does not end", async () => {
    const fetch: Fetch = async (_, { signal }) => {
      const start = (body: ReadableStreamDefaultController) => {
        body.enqueue(Uint8Array.from([0x7b]));
        signal.addEventListener("abort", () => body.error(new Error("aborted")));
      };
      return new Response(new ReadableStream({ start }));
    };
    const it = new Api({ base: "http://host/", auth: { kind: "none" }, fetch, timeout: 1 });
    const unreachable = { status: 0, code: "unreachable", message: expect.stringContaining("no answer") };
    await expect(it.sessions()).rejects.toMatchObject(unreachable);
    await expect(it.screen("x")).rejects.toMatchObject(unreachable);
    await expect(it.log("x")).rejects.toMatchObject(unreachable);
  });
});

describe("where to dial", () => {
  const request = { freshTicket: false };

  test("a page: its key goes into the first message", async () => {
    const { api: it } = api(() => json({}), { kind: "browser", key: "K" }, "http://10.0.0.7:7433/");
    const target = await it.attachTarget("a b")(request);
    expect(target).toEqual({ url: "ws://10.0.0.7:7433/v1/sessions/a%20b/attach", protocols: ["bowline.v1"], key: "K" });
  });

  test("a program: its token goes into a header, and a refused dial is explained", async () => {
    const { api: it } = api(() => json({ code: "unknown_session" }, 404, { "Bowline-Code": "unknown_session" }));
    const target = await it.attachTarget("x")(request);
    expect(target).toMatchObject({
      url: "wss://host/sub/v1/sessions/x/attach",
      headers: { Authorization: "Bearer T" },
    });
    expect(await target.explain!()).toMatchObject({ kind: "refused", status: 404, ours: true });
  });

  test("a ticket: one for each dial", async () => {
    let n = 0;
    const { api: it, asked } = api(() => json({ ticket: `t${++n}`, expires: "" }), { kind: "ticket", token: "T" });
    const build = it.eventsTarget("00000000-0000-4000-8000-000000000001");
    const url = (ticket: string) =>
      `wss://host/sub/v1/events?client=00000000-0000-4000-8000-000000000001&ticket=${ticket}`;
    expect([(await build(request)).url, (await build(request)).url]).toEqual([url("t1"), url("t2")]);
    expect(asked).toHaveLength(2);
  });

  test("nobody: a login is needed", async () => {
    const { api: it } = api(() => json({}), { kind: "none" });
    await expect(it.attachTarget("x")(request)).rejects.toMatchObject({
      closed: { kind: "refused", status: 401, ours: true },
    });
  });
});
