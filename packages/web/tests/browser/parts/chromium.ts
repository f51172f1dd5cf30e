/**
 * A Chromium that nothing but this file talks to, over the pipe of its own protocol. Playwright pretends that every page has the
 * focus, and so that none is ever hidden or frozen; here, pages are what they are for people.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { until } from "./until.ts";

/** The browser: Debian's. */
export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
/** What every browser is started with. */
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

interface Answer {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** A browser of one's own. */
export class Chromium {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #last = 0;

  private constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), "bowline-chromium-"));
    const args = [...FLAGS, "--remote-debugging-pipe", `--user-data-dir=${this.#folder}`, "about:blank"];
    this.#process = spawn(CHROMIUM, args, {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      // Killed as it is, it clears nothing up itself.
      env: { ...process.env, HOME: this.#folder, TMPDIR: this.#folder },
      // A group of its own, so that all of it can be ended.
      detached: true,
    });
    let rest = Buffer.alloc(0);
    (this.#process.stdio[4] as Readable).on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        const answer = JSON.parse(rest.subarray(0, end).toString()) as Answer;
        rest = rest.subarray(end + 1);
        if (answer.id !== undefined) this.#waiting.get(answer.id)?.(answer);
      }
    });
    (this.#process.stdio[3] as Writable).on("error", () => undefined);
    running.add(this);
  }

  /** Starts one. */
  static async start(): Promise<Chromium> {
    const chromium = new Chromium();
    await chromium.send("Browser.getVersion", {});
    return chromium;
  }

  /** Calls a method of the protocol. */
  send(method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#last;
    return new Promise((done, failed) => {
      this.#waiting.set(id, ({ result, error }) => {
        this.#waiting.delete(id);
        if (error) failed(new Error(`${method}: ${error.message}`));
        else done(result ?? {});
      });
      (this.#process.stdio[3] as Writable).write(
        `${JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })}\0`,
      );
    });
  }

  /** A new tab, in front. `script` runs in each of its pages before anything else. */
  async tab(url: string, script = ""): Promise<Tab> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab(this, String(targetId), String(sessionId));
    await tab.send("Page.enable", {});
    if (script) await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: script });
    await tab.send("Page.navigate", { url });
    return tab;
  }

  /** Ends it, and removes its files. */
  async stop(): Promise<void> {
    if (!running.has(this)) return;
    const gone = new Promise((exited) => this.#process.once("exit", exited));
    this.#end();
    await gone;
    this.#remove();
  }

  /** Ends it and removes its files before this process ends. */
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
      // It has ended by itself.
    }
  }

  #remove(): void {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

const running = new Set<Chromium>();
process.on("exit", () => [...running].forEach((chromium) => chromium.stopNow()));

/** A tab. */
export class Tab {
  readonly #chromium: Chromium;
  readonly #target: string;
  readonly #session: string;

  constructor(chromium: Chromium, target: string, session: string) {
    this.#chromium = chromium;
    this.#target = target;
    this.#session = session;
  }

  /** Calls a method of the protocol, for this tab. */
  send(method: string, params: object): Promise<Record<string, unknown>> {
    return this.#chromium.send(method, params, this.#session);
  }

  /** The value of an expression in the page. */
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
  async sees(what: string, expression: string): Promise<void> {
    // The page may be between two documents.
    const look = () => this.value<boolean>(`Boolean(${expression})`).catch(() => false);
    await until(what, look, () => this.value("document.body?.innerText").catch(String));
  }

  /** Brings it to the front. What was in front is hidden. */
  async show(): Promise<void> {
    await this.#chromium.send("Target.activateTarget", { targetId: this.#target });
  }

  /** What the terminal shows and has scrolled away. */
  text(): Promise<string> {
    return this.value<string>(TEXT);
  }

  /** Waits for text in the terminal. */
  async prints(text: string): Promise<void> {
    await until(
      `the terminal shows ${JSON.stringify(text)}`,
      async () => (await this.text().catch(() => "")).includes(text),
      () => this.text(),
    );
  }
}

/** The terminal's text, as an expression. */
const TEXT = `(() => {
  const buffer = document.querySelector('[data-testid="terminal"]')?.terminal?.buffer.active;
  if (!buffer) return "";
  return Array.from({ length: buffer.length }, (_, row) => buffer.getLine(row).translateToString(true)).join("\\n").trimEnd();
})()`;
