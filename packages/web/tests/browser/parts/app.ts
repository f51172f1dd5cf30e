/** The app in a page, as somebody uses it, and the stage on which a file's tests happen. */
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished } from "vitest";
import { until } from "./until.ts";
import { World } from "./world.ts";

/** A laptop's window. */
export const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 800 } };
/** A phone in the hand. */
export const PHONE: BrowserContextOptions = {
  viewport: { width: 390, height: 844 },
  isMobile: true,
  hasTouch: true,
  deviceScaleFactor: 2,
};

/** What a browser writes to its console when the network fails; no fault of the app's. */
const NETWORK = /WebSocket connection to|Failed to load resource|net::ERR_/;

/** What it writes about every page that comes over plain http from elsewhere. */
const PLAIN_HTTP = /Cross-Origin-Opener-Policy header has been ignored/;

/** How a page is opened. */
export interface Opening {
  readonly screen?: BrowserContextOptions;
  /** Another world than the shared one. */
  readonly of?: World;
  /** What the browser calls the gateway. */
  readonly base?: string;
  /** The network is going to fail. */
  readonly rough?: boolean;
  /** What runs in the page before anything else. */
  readonly before?: (() => void) | readonly (() => void)[];
  /** A context that is there already: another tab in it. */
  readonly beside?: App;
}

/** What a terminal in a page has. */
export interface Shown {
  /** Everything, from the oldest line that is kept. */
  readonly text: string;
  /** The lines of the screen. */
  readonly screen: readonly string[];
  readonly cols: number;
  readonly rows: number;
  readonly cursor: readonly [number, number];
  readonly buffer: "normal" | "alternate";
}

/** The app in a page. */
export class App {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly base: string;
  /** Errors in the console, and those that nobody caught. */
  readonly problems: string[] = [];

  constructor(page: Page, base: string, rough: boolean) {
    this.page = page;
    this.context = page.context();
    this.base = base;
    page.on("pageerror", (error) => this.problems.push(error.stack ?? error.message));
    page.on("console", (message) => {
      const text = message.text();
      if (message.type() === "error" && !(rough && NETWORK.test(text)) && !PLAIN_HTTP.test(text))
        this.problems.push(text);
    });
  }

  /** Goes to a session, and waits until it is attached. */
  async visit(session: string): Promise<void> {
    await this.page.goto(`${this.base}/#/s/${session}`);
    await this.state("open");
  }

  /** Waits for a state of the session's connection. */
  async state(name: string): Promise<void> {
    await this.page.waitForSelector(`[data-testid="connection"][data-state="${name}"]`, { timeout: 45_000 });
  }

  /** An element with this test id. */
  part(id: string) {
    return this.page.locator(`[data-testid="${id}"]`);
  }

  /** What the terminal has. */
  shown(): Promise<Shown> {
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

  /** Waits until the terminal has this text. */
  async prints(text: string | RegExp): Promise<Shown> {
    const has = (shown: Shown) => (typeof text === "string" ? shown.text.includes(text) : text.test(shown.text));
    const look = async () => {
      const shown = await this.shown().catch(() => undefined);
      return shown && has(shown) ? shown : undefined;
    };
    return until(`the terminal shows ${String(text)}`, look, () =>
      this.shown().then(({ screen }) => screen.join("\n"), String),
    );
  }

  /** Types keys into the terminal. */
  async type(text: string): Promise<void> {
    await this.focus();
    await this.page.keyboard.type(text);
  }

  /** Gives the terminal the keyboard. */
  async focus(): Promise<void> {
    await this.page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: { focus(): void };
      };
      terminal.focus();
    });
  }

  /** Chooses from the session's menu. */
  async choose(label: string): Promise<void> {
    await this.page.click('[aria-label="Session menu"]');
    await this.page.click(`[role="menuitem"]:has-text("${label}")`);
  }

  /** Two frames later, everything is drawn. */
  async drawn(): Promise<void> {
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
}

/** Where a file's tests happen. */
export interface Stage {
  readonly world: World;
  /** A page on which somebody is logged in by a link. */
  open(opening?: Opening): Promise<App>;
  /** A page on which nobody is. */
  blank(opening?: Opening): Promise<App>;
}

/** The shared gateway and browser, for the tests of a file. No page may complain, and nothing is left behind. */
export function stage(): Stage {
  const world = World.join(inject("world"));
  let browser: Browser;
  let apps: App[] = [];
  beforeAll(async () => {
    browser = await chromium.connect(inject("browser"));
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    const seen = apps;
    apps = [];
    await Promise.all([...new Set(seen.map((app) => app.context))].map((context) => context.close()));
    await world.bowline("kill", "--all", "--grace", "0s");
    expect(seen.flatMap((app) => app.problems)).toEqual([]);
  });

  async function blank({
    screen = DESKTOP,
    of = world,
    base = of.url,
    rough = false,
    before = [],
    beside,
  }: Opening = {}): Promise<App> {
    const context = beside?.context ?? (await browser.newContext({ ...screen, colorScheme: "light" }));
    const page = await context.newPage();
    for (const script of [before].flat()) await page.addInitScript(script);
    const app = new App(page, base, rough);
    apps.push(app);
    return app;
  }

  async function open(opening: Opening = {}): Promise<App> {
    const app = await blank(opening);
    await app.page.goto(await (opening.of ?? world).loginLink(app.base));
    await app.page.waitForSelector("text=New session");
    return app;
  }

  return { world, open, blank };
}

/** Undoes something when the test is over, whatever became of it. */
export function afterwards<T extends { stop(): unknown }>(thing: T): T {
  onTestFinished(async () => {
    await thing.stop();
  });
  return thing;
}
