/** Adapters from common WebSocket classes to the sockets of a connection. */
import type { Socket, SocketEvents, SocketFactory, Target } from "./environment.js";

/** The part of a standard WebSocket that is used. */
export interface StandardWebSocket {
  binaryType: string;
  onopen: unknown;
  onmessage: unknown;
  onclose: unknown;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}

/** The `WebSocket` class of browsers, and of Node from version 22. */
export type StandardWebSocketClass = new (url: string, options: string[]) => StandardWebSocket;

/**
 * Sockets from a standard WebSocket class. Node's class can send headers; a browser's cannot, so use the login cookie or
 * tickets there. (The `error` event is ignored: `close` always follows it, and says more.)
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

/** The part of a WebSocket of the `ws` package that is used. */
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

/** The HTTP response that `ws` passes with `unexpected-response`. */
interface UpgradeResponse {
  readonly statusCode?: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Sockets from the `ws` package, for Node. They can send headers, and report the HTTP status of a refused upgrade. */
export function wsSockets(WebSocketClass: WsWebSocketClass): SocketFactory {
  return (target: Target, events: SocketEvents): Socket => {
    const options = { headers: { ...target.headers }, perMessageDeflate: false };
    const socket = new WebSocketClass(target.url, [...target.protocols], options);
    let refused = false;
    socket.on("open", () => events.opened());
    socket.on("message", (data: Uint8Array, isBinary: boolean) => {
      events.received(isBinary ? data : new TextDecoder().decode(data));
    });
    socket.on("unexpected-response", (request: { destroy(): void }, response: UpgradeResponse) => {
      refused = true;
      const seconds = Number(response.headers["retry-after"] ?? NaN);
      events.closed({
        kind: "refused",
        status: response.statusCode ?? 0,
        fromGateway: response.headers["bowline-code"] !== undefined,
        retryAfter: Number.isFinite(seconds) ? seconds * 1000 : undefined,
      });
      request.destroy();
    });
    // `close` follows, and says the same. Without a listener, Node would throw.
    socket.on("error", () => {});
    socket.on("close", (code: number, reason: Uint8Array) => {
      if (!refused) events.closed({ kind: "code", code, reason: new TextDecoder().decode(reason), done: false });
    });
    return { send: (data) => socket.send(data), close: (code, reason) => socket.close(code, reason) };
  };
}
