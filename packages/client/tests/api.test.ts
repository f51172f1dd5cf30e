/** The HTTP API with a fake `fetch`. */
import { describe, expect, test } from "vitest";
import { Api, ApiError, type Auth, type Fetch, type FileContent } from "../src/index.js";
import { Session } from "./sim/session.js";
import { World } from "./sim/world.js";

const { info } = new Session(new World());

interface RecordedRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  credentials: string;
  body?: unknown;
}

/** The body of a request: JSON, parsed, or a file as it is. */
function sent(body: FileContent): unknown {
  return typeof body === "string" && body.startsWith("{") ? JSON.parse(body) : body;
}

function api(
  respond: () => Response | Promise<Response>,
  auth: Auth = { kind: "bearer", token: "T" },
  base = "https://host/sub",
) {
  const requests: RecordedRequest[] = [];
  const fetch: Fetch = async (url, { method, headers, credentials, body }) => {
    requests.push({ method, url, headers, credentials, ...(body === undefined ? {} : { body: sent(body) }) });
    return respond();
  };
  return { api: new Api({ base, auth, fetch, timeout: 50 }), requests };
}

const json = (value: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), { status, headers });

describe("requests", () => {
  test("use the sub-path and the token", async () => {
    const { api: client, requests } = api(() => json({ sessions: [info] }));
    expect(await client.sessions()).toEqual([info]);
    expect(requests).toEqual([
      {
        method: "GET",
        url: "https://host/sub/v1/sessions",
        headers: { Authorization: "Bearer T" },
        credentials: "omit",
      },
    ]);
  });

  test("a session that cannot be parsed is reported, and the others are still listed", async () => {
    const odd = { ...info, id: "a3v9x0q2m7bb", state: 7 };
    const huge = { ...info, id: "b3v9x0q2m7cc", offset: 2 ** 60 };
    const { api: client } = api(() => json({ sessions: [odd, huge, info, 7] }));
    const unreadable: (string | undefined)[] = [];
    expect(await client.sessions(({ id }) => unreadable.push(id))).toEqual([info]);
    expect(unreadable).toEqual([odd.id, huge.id, undefined]);
    await expect(api(() => json({ sessions: 7 })).api.sessions()).rejects.toMatchObject({ code: "bad_answer" });
  });

  test("a session of an unknown kind, without a terminal, can be parsed", async () => {
    const { argv: _argv, size: _size, ...rest } = info;
    expect(await api(() => json({ ...rest, kind: "hologram" })).api.session("x")).toEqual({ ...rest, kind: "unknown" });
  });

  test("a page of history is parsed, with events of any kind", async () => {
    const state = {
      title: "",
      conversation: null,
      activity: { run: "r0", text: "Writing", can_interrupt: true, started_at: "t" },
      queued: 0,
      runs: [{ run: "r0", at: "t", started: true, aborted: false }],
      tools: [],
      step: "writing",
      approvals: [],
      config: {
        modes: { current: "plan", available: [{ id: "plan", name: "Plan" }] },
        models: null,
        options: [],
        commands: [],
      },
      degraded: false,
    };
    const events = [
      { seq: 7, from: 5, at: "t", event: { type: "text", run: "r0", block: "b", delta: "abc" } },
      { seq: 8, at: "t", event: { type: "hologram" } },
    ];
    const page = { epoch: "9f3c61d2", start: 5, next: 9, events, more: true, state };
    const { api: client, requests } = api(() => json(page));
    expect(await client.history("x")).toEqual(page);
    await client.history("x", { before: 5, limit: 50 });
    await client.history("x", { after: 0 });
    expect(requests.map(({ url }) => url.slice("https://host/sub/v1/sessions/".length))).toEqual([
      "x/events",
      "x/events?before=5&limit=50",
      "x/events?after=0",
    ]);
    await expect(api(() => json({ ...page, next: -1 })).api.history("x")).rejects.toMatchObject({ code: "bad_answer" });
  });

  test("have the right method, path and body", async () => {
    const { api: client, requests } = api(() => json(info));
    await client.session("a b");
    await client.create({ name: "x", argv: ["sh"] }, "K");
    await client.createAgent({ agent: "claude", cwd: "/app", prompt: { id: "a", text: "hi" } }, "L");
    await client.change("x", { name: "y" });
    await client.end("x");
    await client.end("x", { keep: true });
    await client.restart("x", "9f3c61d2");
    expect(requests.map(({ method, url, body }) => [method, url.slice("https://host/sub/v1/".length), body])).toEqual([
      ["GET", "sessions/a%20b", undefined],
      ["POST", "sessions", { kind: "terminal", name: "x", argv: ["sh"] }],
      ["POST", "sessions", { kind: "agent", agent: "claude", cwd: "/app", prompt: { id: "a", text: "hi" } }],
      ["PATCH", "sessions/x", { name: "y" }],
      ["DELETE", "sessions/x", undefined],
      ["DELETE", "sessions/x?keep=true", undefined],
      ["POST", "sessions/x/restart", { epoch: "9f3c61d2" }],
    ]);
    expect(requests[1]!.headers).toMatchObject({ "Idempotency-Key": "K", "Content-Type": "application/json" });
  });

  test("the screen is text, the log is bytes", async () => {
    expect(await api(() => new Response("$ ls\n")).api.screen("x")).toBe("$ ls\n");
    const headers = { "Content-Range": "bytes 100-102/103" };
    const { api: client, requests } = api(() => new Response(Uint8Array.from([1, 2, 3]), { headers, status: 206 }));
    expect(await client.log("x", { from: 100 })).toEqual({ bytes: Uint8Array.from([1, 2, 3]), from: 100 });
    expect(requests[0]!.url).toMatch(/x\/log\?from=100$/);
  });

  test("a blob is text", async () => {
    const { api: client, requests } = api(() => new Response("caf\u00e9\n"));
    expect(await client.blob("a b", 187)).toBe("caf\u00e9\n");
    expect(requests.map(({ method, url }) => [method, url])).toEqual([
      ["GET", "https://host/sub/v1/sessions/a%20b/blobs/187"],
    ]);
  });

  test("files below a session are listed", async () => {
    const files = [
      { path: "src/main.rs", kind: "file" },
      { path: "src", kind: "folder" },
    ];
    const { api: client, requests } = api(() => json({ files, truncated: true, later: 1 }));
    const { signal } = new AbortController();
    expect(await client.files("a b", "../ü&x=%", signal)).toEqual({ files, truncated: true });
    await client.files("a b", "");
    expect(requests.map(({ method, url }) => [method, url])).toEqual([
      ["GET", "https://host/sub/v1/sessions/a%20b/files?q=..%2F%C3%BC%26x%3D%25"],
      ["GET", "https://host/sub/v1/sessions/a%20b/files?q="],
    ]);
    const newer = { files: [{ path: "fifo", kind: "pipe" }], truncated: false };
    const unknown = { files: [{ path: "fifo", kind: "unknown" }], truncated: false };
    expect(await api(() => json(newer)).api.files("x", "")).toEqual(unknown);
    const bad = { files: [{ path: 7, kind: "file" }], truncated: false };
    await expect(api(() => json(bad)).api.files("x", "")).rejects.toMatchObject({ code: "bad_answer" });
  });

  test("folders are listed, by default those of the first root", async () => {
    const folders = [{ name: "bowline", git: true }];
    const reply = { path: "/home/me/src", parent: "/home/me", roots: ["/home/me"], folders, truncated: false };
    const { api: client, requests } = api(() => json(reply));
    expect(await client.folders()).toEqual(reply);
    await client.folders("/home/me/a b", { hidden: true });
    await client.folders("~/src", { hidden: false });
    expect(requests.map(({ method, url }) => [method, url])).toEqual([
      ["GET", "https://host/sub/v1/folders"],
      ["GET", "https://host/sub/v1/folders?path=%2Fhome%2Fme%2Fa+b&hidden=true"],
      ["GET", "https://host/sub/v1/folders?path=%7E%2Fsrc"],
    ]);
    const top = { path: "/", parent: null, roots: ["/"], folders: [], truncated: false };
    expect(await api(() => json(top)).api.folders("/")).toEqual(top);
  });

  test("open approvals are listed, with whole texts", async () => {
    const approval = {
      id: "a7",
      run: null,
      kind: "permission",
      tool: "execute",
      title: "Run it",
      detail: { command: "x".repeat(5000) },
      truncated: false,
      options: [{ id: "once", kind: "allow_once", label: "Allow" }],
      at: "2026-11-15T18:00:00Z",
    };
    const approvals = [{ session: info.id, approval }];
    const { api: client, requests } = api(() => json({ approvals, later: 1 }));
    expect(await client.approvals()).toEqual(approvals);
    expect(requests.map(({ method, url }) => [method, url])).toEqual([["GET", "https://host/sub/v1/approvals"]]);
    const newer = { ...approval, kind: "payment", options: [{ ...approval.options[0], kind: "allow_twice" }] };
    const [read] = await api(() => json({ approvals: [{ session: info.id, approval: newer }] })).api.approvals();
    expect(read?.approval).toMatchObject({ kind: "unknown", options: [{ kind: "unknown" }] });
    await expect(api(() => json({ approvals: [{ session: info.id }] })).api.approvals()).rejects.toMatchObject({
      code: "bad_answer",
    });
  });

  test("a file is uploaded as it is, and can be fetched", async () => {
    const reply = { id: "0123456789abcdef-a-b.png", name: "a/b ü.png", type: "image/png", bytes: 3 };
    for (const file of ["text", Uint8Array.from([1, 2, 3]), new Blob(["blob"])]) {
      const { api: client, requests } = api(() => json(reply, 201));
      expect(await client.upload("s x", "a b%/ü.png", file)).toEqual(reply);
      expect(requests).toEqual([
        {
          method: "PUT",
          url: "https://host/sub/v1/sessions/s%20x/uploads/a%20b%25%2F%C3%BC.png",
          headers: { Authorization: "Bearer T", "Content-Type": "application/octet-stream" },
          credentials: "omit",
          body: file,
        },
      ]);
    }
    const headers = { "Content-Type": "image/png" };
    const { api: client, requests } = api(() => new Response(Uint8Array.from([1, 2, 3]), { headers }));
    expect(await client.uploaded("s", reply.id)).toEqual({ bytes: Uint8Array.from([1, 2, 3]), type: "image/png" });
    expect(requests[0]!.url).toBe(client.uploadUrl("s", reply.id));
    expect(requests[0]!.url).toBe(`https://host/sub/v1/sessions/s/uploads/${reply.id}`);
  });

  test("an upload may take longer than other requests, and says why it was refused", async () => {
    let abort = () => {};
    const fetch: Fetch = (_, { signal }) =>
      new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(new Error("aborted")));
        abort = () => resolve(json({ code: "bad_type", detail: "no" }, 415, { "Bowline-Code": "bad_type" }));
      });
    const client = new Api({ base: "http://host/", auth: { kind: "none" }, fetch, timeout: 1 });
    const upload = client.upload("s", "a.exe", "MZ");
    // Another request is given up meanwhile.
    const finish = abort;
    await expect(client.sessions()).rejects.toMatchObject({ status: 0 });
    finish();
    await expect(upload).rejects.toMatchObject({ status: 415, code: "bad_type" });
  });

  test("login returns the key, which later requests send; logout drops it", async () => {
    const { api: client, requests } = api(() => json({ key: "K" }), { kind: "none" });
    expect(await client.login("CODE")).toEqual({ key: "K" });
    expect(client.auth).toEqual({ kind: "browser", key: "K" });
    await client.logout();
    expect(client.auth).toEqual({ kind: "none" });
    expect(requests.map(({ headers, credentials }) => [headers["Bowline-Key"], credentials])).toEqual([
      [undefined, "same-origin"],
      ["K", "same-origin"],
    ]);
  });

  test("agents are listed with what is known about them", async () => {
    const claude = {
      name: "claude",
      label: "Claude Code",
      protocol: "claude",
      available: true,
      version: "2.1.325",
      problem: "not logged in",
      install: "npm install -g x",
      modes: ["default", "plan"],
      models: ["opus"],
    };
    const mine = { name: "mine", label: "mine", protocol: "acp", available: false, modes: [] };
    const { api: client, requests } = api(() => json({ agents: [claude, { ...mine, later: 1 }] }));
    expect(await client.agents()).toEqual([claude, mine]);
    expect(requests.map(({ method, url }) => [method, url])).toEqual([["GET", "https://host/sub/v1/agents"]]);
    const newer = { ...mine, protocol: "telepathy" };
    expect(await api(() => json({ agents: [newer] })).api.agents()).toEqual([{ ...mine, protocol: "unknown" }]);
    const bad = { ...mine, modes: "plan" };
    await expect(api(() => json({ agents: [bad] })).api.agents()).rejects.toMatchObject({ code: "bad_answer" });
  });

  test("tokens can be listed, created and revoked", async () => {
    const token = {
      id: "t1",
      kind: "token",
      name: "ci",
      scope: "read",
      created: "2026-11-15T18:00:00Z",
      expires: null,
      used: null,
      made_by: "t0",
    };
    expect(await api(() => json({ tokens: [token] })).api.tokens()).toEqual([token]);
    const { api: client, requests } = api(() => json({ id: "t2", token: "S" }, 201));
    expect(await client.createToken({ name: "ci", scope: "write" })).toEqual({ id: "t2", token: "S" });
    await client.revokeToken("t2");
    expect(requests[1]!.url).toMatch(/v1\/tokens\/t2$/);
  });

  test("a token can be revoked with what was made under it", async () => {
    const { api: client, requests } = api(() => json({ revoked: ["t2", "t3"], made: [] }));
    expect(await client.revokeTokenWithMade("t2")).toEqual({ revoked: ["t2", "t3"], made: [] });
    expect(requests[0]!.url).toMatch(/v1\/tokens\/t2\?with_made=true$/);
  });
});

describe("errors", () => {
  const errorOf = async (respond: () => Response | Promise<Response>): Promise<ApiError> => {
    const error = await api(respond)
      .api.session("x")
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ApiError);
    return error as ApiError;
  };

  test("have the status, code and detail of a problem document", async () => {
    const headers = { "Bowline-Code": "unknown_session", "Retry-After": "3" };
    const error = await errorOf(() =>
      json({ code: "unknown_session", title: "No", detail: "no session x" }, 404, headers),
    );
    expect(error).toMatchObject({ status: 404, code: "unknown_session", message: "no session x" });
    expect(error.closed).toEqual({ kind: "refused", status: 404, fromGateway: true, retryAfter: 3000 });
  });

  test("of a proxy are not `fromGateway`", async () => {
    const error = await errorOf(() => new Response("<h1>404</h1>", { status: 404 }));
    expect(error).toMatchObject({ status: 404, code: "http", message: "HTTP status 404", fromGateway: false });
  });

  test("when no response comes, or an invalid one", async () => {
    expect(await errorOf(() => Promise.reject(new TypeError("refused")))).toMatchObject({
      status: 0,
      code: "unreachable",
    });
    expect(await errorOf(() => json({ id: 7 }))).toMatchObject({
      code: "bad_answer",
      message: expect.stringContaining("id:"),
    });
  });

  test("R14: when a request hangs", async () => {
    const fetch: Fetch = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    const client = new Api({ base: "http://host/", auth: { kind: "none" }, fetch, timeout: 1 });
    await expect(client.sessions()).rejects.toMatchObject({
      status: 0,
      message: expect.stringContaining("no response"),
    });
  });

  test("R14: when a response begins and does not end", async () => {
    const fetch: Fetch = async (_, { signal }) => {
      const start = (body: ReadableStreamDefaultController) => {
        body.enqueue(Uint8Array.from([0x7b]));
        signal.addEventListener("abort", () => body.error(new Error("aborted")));
      };
      return new Response(new ReadableStream({ start }));
    };
    const client = new Api({ base: "http://host/", auth: { kind: "none" }, fetch, timeout: 1 });
    const unreachable = { status: 0, code: "unreachable", message: expect.stringContaining("no response") };
    await expect(client.sessions()).rejects.toMatchObject(unreachable);
    await expect(client.screen("x")).rejects.toMatchObject(unreachable);
    await expect(client.log("x")).rejects.toMatchObject(unreachable);
  });
});

describe("a request that is given up", () => {
  const hanging: Fetch = (_url, { signal }) =>
    new Promise((_, failed) => {
      const giveUp = () => failed(new Error("given up"));
      if (signal.aborted) giveUp();
      signal.addEventListener("abort", giveUp);
    });
  const client = new Api({ base: "http://host/", auth: { kind: "none" }, fetch: hanging });
  const failure = { status: 0, code: "unreachable", message: expect.stringContaining("given up") };

  test("fails at once, and says so", async () => {
    const abort = new AbortController();
    const page = client.history("build", {}, abort.signal);
    abort.abort();
    await expect(page).rejects.toMatchObject(failure);
    await expect(client.history("build", {}, abort.signal), "before it began").rejects.toMatchObject(failure);
  });

  test("leaves no listener at the signal, whether it succeeds or fails", async () => {
    const listeners = new Set<unknown>();
    const signal = {
      aborted: false,
      addEventListener: (_: string, listener: unknown) => listeners.add(listener),
      removeEventListener: (_: string, listener: unknown) => listeners.delete(listener),
    } as unknown as AbortSignal;
    const { api: works } = api(() => json({ epoch: "00000001", start: 0, next: 0, events: [], more: false }));
    await works.history("build", {}, signal);
    await expect(api(() => json({}, 503)).api.history("build", {}, signal)).rejects.toBeInstanceOf(ApiError);
    expect(listeners.size).toBe(0);
  });
});

describe("targets", () => {
  const request = { freshTicket: false };

  test("for a page: the key is sent in the first message", async () => {
    const { api: client } = api(() => json({}), { kind: "browser", key: "K" }, "http://10.0.0.7:7433/");
    const target = await client.attachTarget("a b")(request);
    expect(target).toEqual({ url: "ws://10.0.0.7:7433/v1/sessions/a%20b/attach", protocols: ["bowline.v1"], key: "K" });
  });

  test("for a program: the token is sent in a header, and a refused dial can be explained", async () => {
    const { api: client } = api(() => json({ code: "unknown_session" }, 404, { "Bowline-Code": "unknown_session" }));
    const target = await client.attachTarget("x")(request);
    expect(target).toMatchObject({
      url: "wss://host/sub/v1/sessions/x/attach",
      headers: { Authorization: "Bearer T" },
    });
    expect(await target.explain!()).toMatchObject({ kind: "refused", status: 404, fromGateway: true });
  });

  test("with tickets: a new ticket for each dial", async () => {
    let n = 0;
    const { api: client, requests } = api(() => json({ ticket: `t${++n}`, expires: "" }), {
      kind: "ticket",
      token: "T",
    });
    const build = client.eventsTarget("00000000-0000-4000-8000-000000000001");
    const url = (ticket: string) =>
      `wss://host/sub/v1/events?client=00000000-0000-4000-8000-000000000001&ticket=${ticket}`;
    expect([(await build(request)).url, (await build(request)).url]).toEqual([url("t1"), url("t2")]);
    expect(requests).toHaveLength(2);
  });

  test("without a login: the error says that one is needed", async () => {
    const { api: client } = api(() => json({}), { kind: "none" });
    await expect(client.attachTarget("x")(request)).rejects.toMatchObject({
      closed: { kind: "refused", status: 401, fromGateway: true },
    });
  });
});

describe("commands", () => {
  const post = (respond: () => Response) =>
    api(respond).api.postCommand("k3v9x0q2m7aa", "c1", { type: "prompt", text: "hi" }, new AbortController().signal);

  test("a response without an end is read up to 64 KiB, and then cancelled", async () => {
    let [chunks, cancelled] = [0, false];
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        chunks += 1;
        controller.enqueue(new Uint8Array(1000).fill(120));
      },
      cancel: () => {
        cancelled = true;
      },
    });
    const response = await post(() => new Response(endless, { status: 502 }));
    expect(response).toEqual({ kind: "http", status: 502, body: "x".repeat(64 << 10) });
    expect([cancelled, chunks < 70]).toEqual([true, true]);
  });

  test("the text of a body is put together from its pieces, with or without streams", async () => {
    const body = JSON.stringify({ id: "c1", seq: 7, text: "é😀" });
    const pieces = Array.from(new TextEncoder().encode(body), (byte) => Uint8Array.of(byte));
    const stream = new ReadableStream({
      start: (controller) => {
        for (const piece of pieces) controller.enqueue(piece);
        controller.close();
      },
    });
    const expected = { kind: "http", status: 202, body };
    expect(await post(() => new Response(stream, { status: 202 }))).toEqual(expected);
    const plain = () => Object.defineProperty(new Response(body, { status: 202 }), "body", { value: undefined });
    expect(await post(plain)).toEqual(expected);
    expect(await post(() => new Response(null, { status: 204 }))).toEqual({ kind: "http", status: 204, body: "" });
  });

  test("a body that breaks off is a missing response", async () => {
    const broken = () => new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) });
    expect(await post(() => new Response(broken(), { status: 202 }))).toMatchObject({ kind: "missing" });
  });

  test.each([
    ["7", 7000],
    ["0", 0],
    ["1.5", undefined],
    ["", undefined],
    ["-1", undefined],
    ["1e3", undefined],
    ["0x10", undefined],
    ["Wed, 21 Oct 2026 07:28:00 GMT", undefined],
  ])("Retry-After of %j is %s", async (header, retryAfter) => {
    const response = await post(() => new Response("", { status: 503, headers: { "Retry-After": header } }));
    expect(response).toEqual({
      kind: "http",
      status: 503,
      body: "",
      ...(retryAfter === undefined ? {} : { retryAfter }),
    });
  });
});
