/** A conversation in a page, as a user sees and steers it. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import type { App } from "./app.ts";
import type { TestServer } from "./server.ts";
import { until } from "./until.ts";

export class Conversation {
  readonly app: App;
  readonly page: Page;
  readonly id: string;

  private constructor(app: App, id: string) {
    this.app = app;
    this.page = app.page;
    this.id = id;
  }

  /** Opens a conversation, and waits until it is followed. */
  static async visit(app: App, id: string): Promise<Conversation> {
    await app.visit(id);
    await app.byTestId("composer").waitFor();
    return new Conversation(app, id);
  }

  /** Types a message and sends it with the button. */
  async send(text: string): Promise<void> {
    await this.app.byTestId("composer").fill(text);
    await this.app.byTestId("send").click();
  }

  /** The items of the transcript that are in the page. */
  items(kind?: string): Locator {
    return this.page.locator(`[data-testid="transcript"] ol > li${kind ? `[data-kind="${kind}"]` : ""}`);
  }

  /** Everything that the conversation shows. */
  text(): Promise<string> {
    return this.app.byTestId("transcript").innerText();
  }

  /** Waits until the conversation shows this text. */
  async shows(text: string): Promise<void> {
    await until(
      `the conversation shows ${JSON.stringify(text)}`,
      async () => (await this.text()).includes(text),
      () => this.text(),
    );
  }

  /** Waits until this many runs have ended. */
  async ends(count: number): Promise<void> {
    await until(
      `${count} runs have ended`,
      async () => (await this.items("end").count()) === count,
      () => this.text(),
    );
  }

  /** What the line above the composer says. */
  async status(): Promise<string> {
    return (await this.app.byTestId("connection").innerText()).replace(/\s+/g, " ").trim();
  }

  /** Waits until nothing is under way. */
  async isReady(): Promise<void> {
    await until(
      "nothing is under way",
      async () => (await this.status()) === "Ready",
      () => this.status(),
    );
  }
}

/** The events of a conversation, as its journal has them. */
export async function journalOf(server: TestServer, id: string): Promise<Record<string, any>[]> {
  const lines = (await server.bowline("log", id, "--json")).split("\n").filter(Boolean);
  return lines.map((line) => (JSON.parse(line) as { event: Record<string, unknown> }).event);
}

/** The texts of all prompts in the journal. */
export async function promptsOf(server: TestServer, id: string): Promise<string[]> {
  return (await journalOf(server, id)).filter(({ type }) => type === "prompt").map(({ text }) => String(text));
}

let gates = 0;

/** A point where the fake agent waits until the test lets it go on. */
export class Gate {
  readonly #reached: string;
  readonly #open: string;

  constructor(server: TestServer) {
    gates += 1;
    this.#reached = join(server.folder, `reached-${process.pid}-${gates}`);
    this.#open = join(server.folder, `open-${process.pid}-${gates}`);
  }

  /** The instructions of the fake agent. */
  get instructions(): string {
    return `touch ${this.#reached}\nwait ${this.#open}`;
  }

  async reached(): Promise<void> {
    await until("the agent waits at the gate", () => existsSync(this.#reached));
  }

  open(): void {
    writeFileSync(this.#open, "");
  }
}
