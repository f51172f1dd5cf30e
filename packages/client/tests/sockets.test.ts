/** Real WebSockets on the loopback interface, from the `ws` package and from a standard class. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type ConnectionEnd, plainEnvironment, type SocketFactory, standardSockets, wsSockets } from "../src/index.js";

let http: Server;
let url: string;
let upgrades: { authorization: string | undefined; protocol: string | undefined; origin: string | undefined }[];

beforeEach(async () => {
  upgrades = [];
  http = createServer();
  const server = new WebSocketServer({ noServer: true });
  http.on("upgrade", (request, socket, head) => {
    const { authorization, origin, "sec-websocket-protocol": protocol } = request.headers;
    upgrades.push({ authorization, protocol, origin });
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

/** Sends text and bytes, receives their echo, and says bye. */
function exchange(
  factory: SocketFactory,
  path: string,
): Promise<{ received: (string | number[])[]; closed: ConnectionEnd }> {
  return new Promise((resolve) => {
    const received: (string | number[])[] = [];
    const target = { url: url + path, protocols: ["bowline.v1"], headers: { Authorization: "Bearer T" } };
    const socket = factory(target, {
      opened: () => {
        socket.send("hello");
        socket.send(Uint8Array.from([1, 2, 3]));
        socket.send("bye");
      },
      received: (data) => received.push(typeof data === "string" ? data : [...data]),
      closed: (closed) => resolve({ received, closed }),
    });
  });
}

/** `ws` with the constructor of Node's own WebSocket. */
class StandardWebSocket extends WebSocket {
  constructor(url: string, options: string[] | { protocols: string[]; headers: Record<string, string> }) {
    if (Array.isArray(options)) super(url, options);
    else super(url, options.protocols, { headers: options.headers });
    this.on("error", () => {});
  }
}

describe.each([
  ["ws", wsSockets(WebSocket as never)],
  ["a standard class", standardSockets(StandardWebSocket as never)],
])("sockets from %s", (name, factory) => {
  test("carry text and bytes both ways, send the token in a header and no Origin, and report the close code", async () => {
    const { received, closed } = await exchange(factory, "/");
    expect(received).toEqual(["hello", [1, 2, 3]]);
    expect(closed).toEqual({ kind: "code", code: 4410, reason: "forgotten", done: false });
    expect(upgrades).toEqual([{ authorization: "Bearer T", protocol: "bowline.v1", origin: undefined }]);
  });

  test("report a refused upgrade, with its status if the class knows it", async () => {
    const { closed } = await exchange(factory, "/refused");
    if (name === "ws") expect(closed).toEqual({ kind: "refused", status: 404, fromGateway: true, retryAfter: 2000 });
    else expect(closed).toMatchObject({ kind: "code", code: 1006 });
  });
});

test("without a WebSocket class, the error says what to do", () => {
  const original = Object.getOwnPropertyDescriptor(globalThis, "WebSocket");
  try {
    Object.defineProperty(globalThis, "WebSocket", { value: undefined, configurable: true, writable: true });
    expect(() => plainEnvironment()).toThrow(/wsSockets/);
  } finally {
    if (original) Object.defineProperty(globalThis, "WebSocket", original);
    else delete (globalThis as { WebSocket?: unknown }).WebSocket;
  }
});
