/** Real WebSockets on the loopback, by the `ws` package and by a standard class. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type Closed, plainEnvironment, type SocketFactory, standardSockets, wsSockets } from "../src/index.js";

let http: Server;
let url: string;
let seen: { authorization: string | undefined; protocol: string | undefined; origin: string | undefined }[];

beforeEach(async () => {
  seen = [];
  http = createServer();
  const server = new WebSocketServer({ noServer: true });
  http.on("upgrade", (request, socket, head) => {
    const { authorization, origin, "sec-websocket-protocol": protocol } = request.headers;
    seen.push({ authorization, protocol, origin });
    if (request.url === "/refused") {
      socket.end(
        "HTTP/1.1 404 Not Found\r\nBowline-Code: unknown_session\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n",
      );
      return;
    }
    server.handleUpgrade(request, socket, head, (ws) => {
      ws.on("message", (data: Buffer, isBinary) => {
        if (!isBinary && data.toString() === "bye") ws.close(4410, "forgotten");
        else ws.send(data, { binary: isBinary });
      });
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}`;
});

afterEach(async () => {
  http.closeAllConnections();
  await new Promise((resolve) => http.close(resolve));
});

/** Says two things, hears them back, says bye. */
function talk(factory: SocketFactory, path: string): Promise<{ heard: (string | number[])[]; closed: Closed }> {
  return new Promise((resolve) => {
    const heard: (string | number[])[] = [];
    const target = { url: url + path, protocols: ["bowline.v1"], headers: { Authorization: "Bearer T" } };
    const socket = factory(target, {
      opened: () => {
        socket.send("tell");
        socket.send(Uint8Array.from([1, 2, 3]));
        socket.send("bye");
      },
      received: (data) => heard.push(typeof data === "string" ? data : [...data]),
      closed: (closed) => resolve({ heard, closed }),
    });
  });
}

/** `ws` with the constructor that Node's own WebSocket has. */
class Standard extends WebSocket {
  constructor(url: string, options: string[] | { protocols: string[]; headers: Record<string, string> }) {
    if (Array.isArray(options)) super(url, options);
    else super(url, options.protocols, { headers: options.headers });
    this.on("error", () => {});
  }
}

describe.each([
  ["ws", wsSockets(WebSocket as never)],
  ["a standard class", standardSockets(Standard as never)],
])("sockets by %s", (name, factory) => {
  test("text and bytes both ways, the token in a header, no Origin, and the code of the close", async () => {
    const { heard, closed } = await talk(factory, "/");
    expect(heard).toEqual(["tell", [1, 2, 3]]);
    expect(closed).toEqual({ kind: "code", code: 4410, reason: "forgotten", done: false });
    expect(seen).toEqual([{ authorization: "Bearer T", protocol: "bowline.v1", origin: undefined }]);
  });

  test("a refused upgrade", async () => {
    const { closed } = await talk(factory, "/refused");
    if (name === "ws") expect(closed).toEqual({ kind: "refused", status: 404, ours: true, retryAfter: 2000 });
    else expect(closed).toMatchObject({ kind: "code", code: 1006 });
  });
});

test("without any WebSocket, the error says what to do", () => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
  try {
    Object.defineProperty(globalThis, "WebSocket", { value: undefined, configurable: true, writable: true });
    expect(() => plainEnvironment()).toThrow(/wsSockets/);
  } finally {
    if (own) Object.defineProperty(globalThis, "WebSocket", own);
    else delete (globalThis as { WebSocket?: unknown }).WebSocket;
  }
});
