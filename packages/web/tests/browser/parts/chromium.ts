/**
 * A Chromium controlled directly through the DevTools protocol. Playwright emulates focus for every page, so
 * none is ever hidden or frozen; pages in this browser behave as they do for users.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { until } from "./until.ts";

/** The browser that the tests run; Debian's by default. */
export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

interface ProtocolResponse {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

export class Chromium {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #pending = new Map<number, (response: ProtocolResponse) => void>();
  #lastId = 0;

  private constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), "bowline-chromium-"));
    const args = [...FLAGS, "--remote-debugging-pipe", `--user-data-dir=${this.#folder}`, "about:blank"];
    this.#process = spawn(CHROMIUM, args, {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      // It is killed, so it cannot remove its own files.
      env: { ...process.env, HOME: this.#folder, TMPDIR: this.#folder },
      // Its own process group, so that all of its processes can be killed.
      detached: true,
    });
    let rest = Buffer.alloc(0);
    (this.#process.stdio[4] as Readable).on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        const response = JSON.parse(rest.subarray(0, end).toString()) as ProtocolResponse;
        rest = rest.subarray(end + 1);
        if (response.id !== undefined) this.#pending.get(response.id)?.(response);
      }
    });
    (this.#process.stdio[3] as Writable).on("error", () => undefined);
    running.add(this);
  }

  static async start(): Promise<Chromium> {
    const chromium = new Chromium();
    await chromium.send("Browser.getVersion", {});
    return chromium;
  }

  /** Calls a DevTools method. */
  send(method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    return new Promise((done, failed) => {
      this.#pending.set(id, ({ result, error }) => {
        this.#pending.delete(id);
        if (error) failed(new Error(`${method}: ${error.message}`));
        else done(result ?? {});
      });
      (this.#process.stdio[3] as Writable).write(
        `${JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })}\0`,
      );
    });
  }

  /** Opens a new tab in front. `initScript` runs first in each of its pages. */
  async tab(url: string, initScript = ""): Promise<Tab> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab(this, String(targetId), String(sessionId));
    await tab.send("Page.enable", {});
    if (initScript) await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: initScript });
    await tab.send("Page.navigate", { url });
    return tab;
  }

  /** Ends the browser, and removes its files. */
  async stop(): Promise<void> {
    if (!running.has(this)) return;
    const gone = new Promise((exited) => this.#process.once("exit", exited));
    this.#end();
    await gone;
    this.#remove();
  }

  /** Like `stop`, but without waiting for the exit. For use when this process exits. */
  stopNow(): void {
    this.#end();
    this.#remove();
  }

  #end(): void {
    running.delete(this);
    if (this.#process.pid === undefined) return;
    try {
      process.kill(-this.#process.pid, "SIGKILL");
    } catch {
      // It has already exited.
    }
  }

  #remove(): void {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

const running = new Set<Chromium>();
process.on("exit", () => [...running].forEach((chromium) => chromium.stopNow()));

export class Tab {
  readonly #chromium: Chromium;
  readonly #target: string;
  readonly #session: string;

  constructor(chromium: Chromium, target: string, session: string) {
    this.#chromium = chromium;
    this.#target = target;
    this.#session = session;
  }

  /** Calls a DevTools method for this tab. */
  send(method: string, params: object): Promise<Record<string, unknown>> {
    return this.#chromium.send(method, params, this.#session);
  }

  /** Evaluates an expression in the page. */
  async value<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { value: T }).value;
  }

  /** Waits until an expression in the page is true. */
  async waitFor(description: string, expression: string): Promise<void> {
    // Fails while the page navigates.
    const check = () => this.value<boolean>(`Boolean(${expression})`).catch(() => false);
    await until(description, check, () => this.value("document.body?.innerText").catch(String));
  }

  /** Brings the tab to the front, which hides the previous one. */
  async show(): Promise<void> {
    await this.#chromium.send("Target.activateTarget", { targetId: this.#target });
  }

  /** The text of the terminal, with its scrollback. */
  text(): Promise<string> {
    return this.value<string>(TEXT);
  }

  /** Waits until the terminal shows this text. */
  async prints(text: string): Promise<void> {
    await until(
      `the terminal shows ${JSON.stringify(text)}`,
      async () => (await this.text().catch(() => "")).includes(text),
      () => this.text(),
    );
  }
}

/** An expression for the text of the terminal. */
const TEXT = `(() => {
  const buffer = document.querySelector('[data-testid="terminal"]')?.terminal?.buffer.active;
  if (!buffer) return "";
  return Array.from({ length: buffer.length }, (_, row) => buffer.getLine(row).translateToString(true)).join("\\n").trimEnd();
})()`;
