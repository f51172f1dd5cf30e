/** WebSockets of the usual kinds as the sockets of a connection. */
import type { Socket, SocketEvents, SocketFactory, Target } from "./environment.js";

/** As much of a standard WebSocket as is used. */
export interface StandardWebSocket {
  binaryType: string;
  onopen: unknown;
  onmessage: unknown;
  onclose: unknown;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}

/** The WebSocket of browsers, and of Node from 22 on. */
export type StandardWebSocketClass = new (url: string, options: string[]) => StandardWebSocket;

/**
 * Sockets by a standard WebSocket class. Node's takes headers as well, a browser's does not: there, use the cookie or tickets.
 * (Its `error` event says nothing that its `close` does not.)
 */
export function standardSockets(WebSocketClass: StandardWebSocketClass): SocketFactory {
  return (target, events) => {
    const protocols = [...target.protocols];
    const options = target.headers ? { protocols, headers: target.headers } : protocols;
    const socket = new WebSocketClass(target.url, options as string[]);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => events.opened();
    socket.onmessage = ({ data }: { data: string | ArrayBuffer }) =>
      events.received(typeof data === "string" ? data : new Uint8Array(data));
    socket.onclose = ({ code, reason }: { code: number; reason: string }) =>
      events.closed({ kind: "code", code, reason, done: false });
    return {
      send: (data) => socket.send(data as Uint8Array<ArrayBuffer>),
      close: (code, reason) => socket.close(code, reason),
    };
  };
}

/** As much of a socket of the `ws` package as is used. */
export interface WsWebSocket {
  on(event: string, listener: (...args: never[]) => void): unknown;
  send(data: string | Uint8Array): void;
  close(code?: number, reason?: string): void;
}

/** The `WebSocket` class of the `ws` package. */
export type WsWebSocketClass = new (
  url: string,
  protocols: string[],
  options: { headers: Record<string, string>; perMessageDeflate: boolean },
) => WsWebSocket;

/** What `ws` gives with `unexpected-response`. */
interface Refusal {
  readonly statusCode?: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Sockets by the `ws` package, for Node: they send headers, and see with which status an upgrade was refused. */
export function wsSockets(WebSocketClass: WsWebSocketClass): SocketFactory {
  return (target: Target, events: SocketEvents): Socket => {
    const options = { headers: { ...target.headers }, perMessageDeflate: false };
    const socket = new WebSocketClass(target.url, [...target.protocols], options);
    let refused = false;
    socket.on("open", () => events.opened());
    socket.on("message", (data: Uint8Array, isBinary: boolean) => {
      events.received(isBinary ? data : new TextDecoder().decode(data));
    });
    socket.on("unexpected-response", (request: { destroy(): void }, response: Refusal) => {
      refused = true;
      const seconds = Number(response.headers["retry-after"] ?? NaN);
      events.closed({
        kind: "refused",
        status: response.statusCode ?? 0,
        ours: response.headers["bowline-code"] !== undefined,
        retryAfter: Number.isFinite(seconds) ? seconds * 1000 : undefined,
      });
      request.destroy();
    });
    // `close` follows, and says the same.
    socket.on("error", () => {});
    socket.on("close", (code: number, reason: Uint8Array) => {
      if (!refused) events.closed({ kind: "code", code, reason: new TextDecoder().decode(reason), done: false });
    });
    return { send: (data) => socket.send(data), close: (code, reason) => socket.close(code, reason) };
  };
}
