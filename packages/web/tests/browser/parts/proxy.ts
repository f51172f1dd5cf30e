/** What stands between a browser and a gateway: a line that can be cut, held or refused, and a proxy that strips a path. */
import { createServer as createHttp, request, type Server as HttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

interface Line {
  readonly browser: Socket;
  readonly gateway: Socket;
  /** The path of its first request. */
  path: string;
  /** When it is cut. */
  cut: Cut | undefined;
  held: boolean;
}

/** Cuts a line in the middle of what goes to the browser: as many chunks pass whole, of the next one only a part does. */
export interface Cut {
  readonly whole: number;
  /** From 0 to 1. */
  readonly part: number;
}

/** A TCP proxy whose lines can be cut. */
export class Wire {
  readonly #server: Server;
  readonly #lines = new Set<Line>();
  /** Paths of all first requests, in order. */
  readonly dialled: string[] = [];
  /** New connections are cut at once. */
  refusing = false;
  /** How each new WebSocket to a session is cut. */
  cutting: (() => Cut) | undefined;

  private constructor(target: URL) {
    this.#server = createServer({ allowHalfOpen: false }, (browser) =>
      this.#accept(browser, connect(Number(target.port), target.hostname)),
    );
  }

  /** A wire to a gateway. */
  static async to(url: string): Promise<Wire> {
    const wire = new Wire(new URL(url));
    await new Promise<void>((listening) => wire.#server.listen(0, "127.0.0.1", listening));
    return wire;
  }

  /** What a browser calls. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Dials for sessions so far. */
  get attaches(): number {
    return this.dialled.filter(isAttach).length;
  }

  /** Connections to sessions that are open now. */
  get attached(): number {
    return [...this.#lines].filter((line) => isAttach(line.path)).length;
  }

  /** Cuts everything. */
  cut(): void {
    for (const line of this.#lines) end(line);
  }

  /** Lets nothing through any more, in both directions, and leaves every socket open: what sleep does to a phone's. */
  hold(): void {
    for (const line of this.#lines) line.held = true;
  }

  /** Ends it. */
  async stop(): Promise<void> {
    this.refusing = true;
    this.cut();
    await new Promise((closed) => this.#server.close(closed));
  }

  #accept(browser: Socket, gateway: Socket): void {
    const line: Line = { browser, gateway, path: "", cut: undefined, held: false };
    this.#lines.add(line);
    for (const socket of [browser, gateway]) {
      socket.setNoDelay(true);
      socket.on("error", () => end(line));
      socket.on("close", () => {
        this.#lines.delete(line);
        end(line);
      });
    }
    if (this.refusing) return end(line);
    browser.on("data", (chunk) => {
      if (!line.path) {
        line.path = /^\w+ (\S+)/.exec(chunk.toString("latin1"))?.[1] ?? "?";
        this.dialled.push(line.path);
        if (isAttach(line.path)) line.cut = this.cutting?.();
      }
      if (!line.held) gateway.write(chunk);
    });
    gateway.on("data", (chunk) => {
      if (line.held) return;
      if (!line.cut || line.cut.whole > 0) {
        if (line.cut) line.cut = { ...line.cut, whole: line.cut.whole - 1 };
        browser.write(chunk);
      } else {
        // Nothing may follow the part, as if it were the rest.
        line.held = true;
        browser.write(chunk.subarray(0, Math.floor(chunk.length * line.cut.part)), () => end(line));
      }
    });
  }
}

function isAttach(path: string): boolean {
  return path.includes("/attach");
}

function end({ browser, gateway }: Line): void {
  browser.destroy();
  gateway.destroy();
}

/** An answer of a proxy's own. */
export interface Instead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A proxy that serves a gateway under a path, and takes the path away. */
export class PrefixProxy {
  readonly #server: HttpServer;
  readonly #sockets = new Set<Socket>();
  readonly #prefix: string;
  /** Answers in the gateway's place, where it has one for a path. */
  instead: ((path: string) => Instead | undefined) | undefined;

  private constructor(target: URL, prefix: string, adds: Readonly<Record<string, string>>) {
    this.#prefix = prefix;
    const inner = (url = "/") => (url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : undefined);
    const where = { host: target.hostname, port: target.port };
    this.#server = createHttp((from, to) => {
      const path = inner(from.url);
      if (path === undefined) return void to.writeHead(404).end("elsewhere");
      const own = this.instead?.(path);
      if (own) return void to.writeHead(own.status, own.headers).end(own.body);
      const asked = request(
        { ...where, path, method: from.method, headers: { ...from.headers, ...adds } },
        (answer) => {
          to.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(to);
        },
      );
      asked.on("error", () => (to.headersSent ? to.destroy() : to.writeHead(502).end("the gateway is away")));
      from.pipe(asked);
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

  /** A proxy to a gateway; it adds these headers to every request. */
  static async to(url: string, prefix: string, adds: Readonly<Record<string, string>> = {}): Promise<PrefixProxy> {
    const proxy = new PrefixProxy(new URL(url), prefix, adds);
    await new Promise<void>((listening) => proxy.#server.listen(0, "127.0.0.1", listening));
    return proxy;
  }

  /** What a browser calls. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${this.#prefix}`;
  }

  /** Ends it. */
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
