/**
 * Proxies between a browser and a gateway: one whose connections can be cut, stalled or refused, and one that
 * strips a path.
 */
import { createServer as createHttp, request, type Server as HttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

interface Connection {
  readonly browser: Socket;
  readonly gateway: Socket;
  /** The path of its first request. */
  path: string;
  /** Where it is cut, if it is going to be. */
  cut: Cut | undefined;
  stalled: boolean;
}

/** Cuts a connection within the data to the browser: `whole` chunks pass, then only a part of the next one. */
export interface Cut {
  readonly whole: number;
  /** The fraction of that chunk that passes, from 0 to 1. */
  readonly part: number;
}

/** A TCP proxy whose connections can be cut. */
export class Wire {
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  /** The path of the first request on each connection, oldest first. */
  readonly dialled: string[] = [];
  /** Whether new connections are closed at once. */
  refusing = false;
  /** How each new WebSocket to a session is cut. */
  cutting: (() => Cut) | undefined;

  private constructor(target: URL) {
    this.#server = createServer({ allowHalfOpen: false }, (browser) =>
      this.#accept(browser, connect(Number(target.port), target.hostname)),
    );
  }

  /** Starts a proxy to a gateway. */
  static async to(url: string): Promise<Wire> {
    const wire = new Wire(new URL(url));
    await new Promise<void>((listening) => wire.#server.listen(0, "127.0.0.1", listening));
    return wire;
  }

  /** The URL for browsers. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many attach connections were made. */
  get attaches(): number {
    return this.dialled.filter(isAttach).length;
  }

  /** Cuts all connections. */
  cut(): void {
    for (const connection of this.#connections) end(connection);
  }

  /** Stops passing data on all current connections but leaves them open, as when a phone sleeps. */
  stall(): void {
    for (const connection of this.#connections) connection.stalled = true;
  }

  async stop(): Promise<void> {
    this.refusing = true;
    this.cut();
    await new Promise((closed) => this.#server.close(closed));
  }

  #accept(browser: Socket, gateway: Socket): void {
    const connection: Connection = { browser, gateway, path: "", cut: undefined, stalled: false };
    this.#connections.add(connection);
    for (const socket of [browser, gateway]) {
      socket.setNoDelay(true);
      socket.on("error", () => end(connection));
      socket.on("close", () => {
        this.#connections.delete(connection);
        end(connection);
      });
    }
    if (this.refusing) return end(connection);
    browser.on("data", (chunk) => {
      if (!connection.path) {
        connection.path = /^\w+ (\S+)/.exec(chunk.toString("latin1"))?.[1] ?? "?";
        this.dialled.push(connection.path);
        if (isAttach(connection.path)) connection.cut = this.cutting?.();
      }
      if (!connection.stalled) gateway.write(chunk);
    });
    gateway.on("data", (chunk) => {
      if (connection.stalled) return;
      if (!connection.cut || connection.cut.whole > 0) {
        if (connection.cut) connection.cut = { ...connection.cut, whole: connection.cut.whole - 1 };
        browser.write(chunk);
      } else {
        // No later chunk may pass as if it were the rest of this one.
        connection.stalled = true;
        browser.write(chunk.subarray(0, Math.floor(chunk.length * connection.cut.part)), () => end(connection));
      }
    });
  }
}

function isAttach(path: string): boolean {
  return path.includes("/attach");
}

function end({ browser, gateway }: Connection): void {
  browser.destroy();
  gateway.destroy();
}

/** A response that the proxy sends instead of the gateway's. */
export interface ProxyResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An HTTP proxy that serves a gateway under a path and strips that path from requests. */
export class PrefixProxy {
  readonly #server: HttpServer;
  readonly #sockets = new Set<Socket>();
  readonly #prefix: string;
  /** Overrides the gateway's response for a path, unless it returns undefined. */
  override: ((path: string) => ProxyResponse | undefined) | undefined;

  private constructor(target: URL, prefix: string, adds: Readonly<Record<string, string>>) {
    this.#prefix = prefix;
    const inner = (url = "/") => (url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : undefined);
    const where = { host: target.hostname, port: target.port };
    this.#server = createHttp((from, to) => {
      const path = inner(from.url);
      if (path === undefined) return void to.writeHead(404).end("not found");
      const override = this.override?.(path);
      if (override) return void to.writeHead(override.status, override.headers).end(override.body);
      const forwarded = request(
        { ...where, path, method: from.method, headers: { ...from.headers, ...adds } },
        (response) => {
          to.writeHead(response.statusCode ?? 502, response.headers);
          response.pipe(to);
        },
      );
      forwarded.on("error", () => (to.headersSent ? to.destroy() : to.writeHead(502).end("bad gateway")));
      from.pipe(forwarded);
    });
    this.#server.on("connection", (socket: Socket) => this.#keep(socket));
    this.#server.on("upgrade", (from, browser: Socket, head) => {
      const path = inner(from.url);
      if (path === undefined) return void browser.end("HTTP/1.1 404 Not Found\r\n\r\n");
      const gateway = connect(Number(target.port), target.hostname);
      this.#keep(gateway);
      const raw = [...from.rawHeaders, ...Object.entries(adds).flat()];
      const headers = raw.reduce((text, part, at) => text + part + (at % 2 === 0 ? ": " : "\r\n"), "");
      gateway.write(`${from.method} ${path} HTTP/1.1\r\n${headers}\r\n`);
      gateway.write(head);
      gateway.pipe(browser).on("error", () => gateway.destroy());
      browser.pipe(gateway).on("error", () => browser.destroy());
    });
  }

  /** Starts a proxy to a gateway. It adds these headers to every request. */
  static async to(url: string, prefix: string, adds: Readonly<Record<string, string>> = {}): Promise<PrefixProxy> {
    const proxy = new PrefixProxy(new URL(url), prefix, adds);
    await new Promise<void>((listening) => proxy.#server.listen(0, "127.0.0.1", listening));
    return proxy;
  }

  /** The URL for browsers. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#prefix}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  }
}
