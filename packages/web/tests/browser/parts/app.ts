/** The app in a browser page as a user sees it, and the setup of a browser test file. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished } from "vitest";
import { until } from "./until.ts";
import { TestServer } from "./server.ts";

/** A desktop window. */
export const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 800 } };
/** A phone. */
export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  deviceScaleFactor: 2,
};

/** Console errors of the browser when the network fails. */
const NETWORK_ERROR = /WebSocket connection to|Failed to load resource|net::ERR_/;

/** A console error of the browser for every page over plain HTTP. */
const PLAIN_HTTP = /Cross-Origin-Opener-Policy header has been ignored/;

export interface OpenOptions {
  readonly screen?: BrowserContextOptions;
  /** The server to use instead of the shared one. */
  readonly server?: TestServer;
  /** The base URL under which the browser reaches the gateway. */
  readonly base?: string;
  /** Whether network errors in the console are expected. */
  readonly networkErrors?: boolean;
  /** Scripts that run first in the page. */
  readonly initScript?: (() => void) | readonly (() => void)[];
  /** Opens another tab in the browser context of this app, instead of a new context. */
  readonly sharing?: App;
}

export interface TerminalState {
  /** All lines, including the scrollback. */
  readonly text: string;
  /** The lines of the screen, without the scrollback. */
  readonly screen: readonly string[];
  readonly cols: number;
  readonly rows: number;
  readonly cursor: readonly [number, number];
  readonly buffer: "normal" | "alternate";
}

export class App {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly base: string;
  /** Console errors and uncaught exceptions. */
  readonly problems: string[] = [];

  constructor(page: Page, base: string, networkErrors: boolean) {
    this.page = page;
    this.context = page.context();
    this.base = base;
    page.on("pageerror", (error) => this.problems.push(error.stack ?? error.message));
    page.on("console", (message) => {
      const text = message.text();
      if (message.type() === "error" && !(networkErrors && NETWORK_ERROR.test(text)) && !PLAIN_HTTP.test(text))
        this.problems.push(text);
    });
  }

  /** Opens a session, and waits until it is attached. */
  async visit(session: string): Promise<void> {
    await this.page.goto(`${this.base}/#/s/${session}`);
    await this.waitForState("open");
  }

  /** Waits until the session's connection has this state. */
  async waitForState(name: string): Promise<void> {
    await this.page.waitForSelector(`[data-testid="connection"][data-state="${name}"]`, { timeout: 45_000 });
  }

  /** The element with this test id. */
  byTestId(id: string) {
    return this.page.locator(`[data-testid="${id}"]`);
  }

  /** The state of the terminal. */
  terminalState(): Promise<TerminalState> {
    return this.page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: import("@xterm/xterm").Terminal;
      };
      const { active } = terminal.buffer;
      const lines = Array.from({ length: active.length }, (_, row) => active.getLine(row)!.translateToString(true));
      return {
        text: lines.join("\n").trimEnd(),
        screen: lines.slice(active.baseY),
        cols: terminal.cols,
        rows: terminal.rows,
        cursor: [active.cursorX, active.cursorY] as const,
        buffer: active.type,
      };
    });
  }

  /** Waits until the terminal shows this text. */
  async prints(text: string | RegExp): Promise<TerminalState> {
    const matches = (state: TerminalState) =>
      typeof text === "string" ? state.text.includes(text) : text.test(state.text);
    const check = async () => {
      const state = await this.terminalState().catch(() => undefined);
      return state && matches(state) ? state : undefined;
    };
    return until(`the terminal shows ${String(text)}`, check, () =>
      this.terminalState().then(({ screen }) => screen.join("\n"), String),
    );
  }

  /** Types keys into the terminal. */
  async type(text: string): Promise<void> {
    await this.focus();
    await this.page.keyboard.type(text);
  }

  /** Focuses the terminal. */
  async focus(): Promise<void> {
    await this.page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: { focus(): void };
      };
      terminal.focus();
    });
  }

  /** Chooses an item of the session menu. */
  async choose(label: string): Promise<void> {
    await this.page.click('[aria-label="Session menu"]');
    await this.page.click(`[role="menuitem"]:has-text("${label}")`);
  }

  /** Waits two frames, until everything is painted. */
  async waitForPaint(): Promise<void> {
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
}

export interface BrowserSuite {
  readonly server: TestServer;
  /** Opens a page and logs in with a login link. */
  open(options?: OpenOptions): Promise<App>;
  /** Opens an empty page. */
  blank(options?: OpenOptions): Promise<App>;
}

/** Sets up the shared gateway and browser for the tests of a file. After each test, fails if a page reported errors. */
export function browserSuite(): BrowserSuite {
  const server = TestServer.join(inject("server"));
  let browser: Browser;
  let apps: App[] = [];
  beforeAll(async () => {
    browser = await chromium.connect(inject("browser"));
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    const opened = apps;
    apps = [];
    await Promise.all([...new Set(opened.map((app) => app.context))].map((context) => context.close()));
    await server.bowline("kill", "--all", "--grace", "0s");
    expect(opened.flatMap((app) => app.problems)).toEqual([]);
  });

  async function blank({
    screen = DESKTOP,
    server: target = server,
    base = target.url,
    networkErrors = false,
    initScript = [],
    sharing,
  }: OpenOptions = {}): Promise<App> {
    const context = sharing?.context ?? (await browser.newContext({ colorScheme: "light", ...screen }));
    const page = await context.newPage();
    for (const script of [initScript].flat()) await page.addInitScript(script);
    const app = new App(page, base, networkErrors);
    apps.push(app);
    return app;
  }

  async function open(options: OpenOptions = {}): Promise<App> {
    const app = await blank(options);
    await app.page.goto(await (options.server ?? server).loginLink(app.base));
    await app.page.waitForSelector("text=New session");
    return app;
  }

  return { server, open, blank };
}

/** Stops a resource when the test ends, even if it fails. */
export function stopAfterTest<T extends { stop(): unknown }>(resource: T): T {
  onTestFinished(async () => {
    await resource.stop();
  });
  return resource;
}
