/** Tests what surrounds a terminal: search, its menus, scrolling, and older output. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE, stopAfterTest } from "./parts/app.ts";
import { Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Waits until the search shows this result. */
async function finds(app: App, result: RegExp): Promise<void> {
  const shown = () => app.byTestId("search-result").textContent();
  await until(`the search says ${String(result)}`, async () => result.test((await shown()) ?? ""), shown);
}

test("R54: a search says how many matches there are, and can match case and regular expressions", async () => {
  const app = await open();
  const { page } = app;
  const id = await server.new("sh", "-c", "seq -f 'Number %.0f' 1500; echo END number; exec cat");
  // A snapshot has the last 1,000 lines.
  await until("the session has printed", async () => (await server.screen(id)).includes("END"));
  await app.visit(id);
  await app.prints(/^END/m);
  await page.keyboard.press("Control+Shift+F");
  const field = page.locator('[aria-label="Search for"]');
  await field.fill("Number 123");
  await finds(app, /^\d+ of 10$/);
  await field.fill("NUMBER 123");
  await finds(app, /^\d+ of 10$/);
  await page.click('[aria-label="Match case"]');
  await finds(app, /^No results$/);
  await field.fill("number");
  await finds(app, /^1 of 1$/);
  await page.click('[aria-label="Match case"]');
  await finds(app, /^1,000\+ results$/);
  await page.click('[aria-label="Regular expression"]');
  await field.fill("Number (1497|1498)$");
  await finds(app, /^\d of 2$/);
  await field.fill("Number (1497");
  await finds(app, /^Not a regular expression$/);
  await field.fill("x*");
  await finds(app, /^No results$/);
});

/** Scrolls the terminal by this many lines. */
const scrollLines = ({ page }: App, lines: number) =>
  page.evaluate((lines) => {
    const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
      terminal: import("@xterm/xterm").Terminal;
    };
    terminal.scrollLines(lines);
  }, lines);

/** Opens a session that has printed the numbers up to `last`, then echoes what is typed. */
async function openNumbers(app: App, last: number): Promise<void> {
  const id = await server.new("sh", "-c", `seq -f 'number %.0f' ${last}; echo END; exec cat`);
  await until("the session has printed", async () => (await server.screen(id)).includes("END"));
  await app.visit(id);
  await app.prints(/^END$/m);
}

const hasFocus = ({ page }: App) =>
  page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea"));

test.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("R54: on %s, selecting text begins where the reader is", async (_, screen) => {
  const app = await open({ screen });
  await openNumbers(app, 500);
  const visible = () =>
    app.page.evaluate(() => {
      const pane = document.querySelector("dialog pre")!;
      const { left, top, bottom } = pane.getBoundingClientRect();
      const textAt = (y: number) => {
        const { offsetNode, offset } = document.caretPositionFromPoint(left + 30, y)!;
        const text = offsetNode.textContent!;
        const start = text.lastIndexOf("\n", offset) + 1;
        return text.slice(start, text.indexOf("\n", start) < 0 ? undefined : text.indexOf("\n", start));
      };
      return [textAt(top + 9), textAt(bottom - 20)];
    });
  await app.choose("Select text");
  await until("the end is shown", async () => (await visible())[1] === "END", visible);
  await app.page.keyboard.press("Escape");
  await scrollLines(app, -200);
  await app.waitForPaint();
  const first = await app.page.evaluate(() => {
    const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
      terminal: import("@xterm/xterm").Terminal;
    };
    const { active } = terminal.buffer;
    return active.getLine(active.viewportY)!.translateToString(true);
  });
  await app.choose("Select text");
  await until("the reader's place is shown", async () => (await visible())[0] === first, visible);
});

test("R54: a terminal that is scrolled up says when there is new output, and jumps to it", async () => {
  const app = await open();
  await openNumbers(app, 500);
  const jump = app.page.locator('button[title="Jump to the bottom"]');
  expect(await jump.count()).toBe(0);
  await scrollLines(app, -50);
  await jump.waitFor();
  expect(await jump.textContent()).toContain("Jump to the bottom");
  const [id] = /[^/]+$/.exec(app.page.url())!;
  await server.bowline("send", id, "--enter", "more output");
  await jump.locator("text=New output").waitFor();
  await jump.click();
  await jump.waitFor({ state: "detached" });
  const { screen } = await app.terminalState();
  expect(screen).toContain("more output");
});

test.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("R54: on %s, output above the scrollback is read from the log", async (_, screen) => {
  const app = await open({ screen });
  await openNumbers(app, 100_000);
  const { text } = await app.terminalState();
  const first = Number(/^number (\d+)$/m.exec(text)![1]);
  expect(first).toBeGreaterThan(95_000);
  await scrollLines(app, -2000);
  await app.page.click("text=Show older output");
  const older = app.byTestId("older-output");
  await older.locator(`text=number ${first - 1}`).waitFor();
  const numbers = async () =>
    [...(await older.innerText()).matchAll(/^number (\d+)$/gm)].map((match) => Number(match[1]));
  const before = await numbers();
  expect(before.at(-1)).toBeLessThanOrEqual(first + 1);
  expect(before.at(-1)).toBeGreaterThanOrEqual(first - 1);
  for (let loads = 0; loads < 4 && (await older.locator("text=This is the oldest").count()) === 0; loads++) {
    const shown = (await numbers()).length;
    await older.locator("text=Load more").click();
    await until("more is shown", async () => (await numbers()).length > shown);
  }
  const all = await numbers();
  expect(all[0]).toBe(1);
  expect(all.findIndex((number, at) => number !== at + 1)).toBe(-1);
});

test("R4, R54: output that was skipped is shown on a click", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, networkErrors: true });
  const go = join(server.folder, "go-skipped");
  const id = await server.new(
    "sh",
    "-c",
    `echo before; until test -e ${go}; do sleep 0.05; done; seq -f 'number %.0f' 400000; echo END; exec cat`,
  );
  await app.visit(id);
  await app.prints("before");
  wire.refusing = true;
  wire.cut();
  writeFileSync(go, "");
  await until("the session has printed", async () => (await server.screen(id)).includes("END"));
  wire.refusing = false;
  await app.page.evaluate(() => void dispatchEvent(new Event("online")));
  await app.prints(/^END$/m);
  await app.page.waitForSelector("text=/bytes of output skipped/");
  await app.page.click('button:text-is("Show")');
  await app.byTestId("older-output").locator("text=/^number 39\\d+$/m").waitFor();
  await app.page.waitForSelector("text=/bytes of output skipped/", { state: "detached" });
});

test("R54: the focus returns to the terminal after a menu and after a dialog", async () => {
  const app = await open();
  const { page } = app;
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.focus();
  await page.click('[aria-label="Session menu"]');
  expect(await hasFocus(app)).toBe(false);
  await page.keyboard.press("Escape");
  expect(await hasFocus(app)).toBe(true);
  await app.choose("Rename");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  expect(await hasFocus(app)).toBe(true);
  // A menu that was opened with the keyboard gives the focus back to its button.
  await page.focus('[aria-label="Session menu"]');
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Session menu");
});

test("R3: a session that has ended has no cursor, and one that was forgotten cannot be restarted", async () => {
  const app = await open();
  const { page } = app;
  const id = await server.shell();
  await app.visit(id);
  await app.prints("ready>");
  await app.type("exit 3\r");
  await page.waitForSelector('[data-testid="exit"]:has-text("Exited with code 3")');
  await app.waitForPaint();
  expect(await page.locator(".xterm-cursor").count()).toBe(0);
  await page.waitForSelector('button:has-text("Restart")');
  await server.bowline("kill", id);
  await page.waitForSelector("text=Forgotten");
  expect(await page.locator('button:has-text("Restart")').count()).toBe(0);
  await page.click('footer button:has-text("Back to the board")');
  await page.waitForSelector("text=No sessions yet");
});

/** The middle of the terminal's first rows, where a test presses the mouse. */
async function pointIn({ page }: App): Promise<[number, number]> {
  const { x, y } = (await page.locator(".xterm-screen").boundingBox())!;
  return [x + 100, y + 30];
}

test("R54: a right click opens a menu that copies, pastes, selects all and searches", async () => {
  const app = await open();
  const { page } = app;
  await app.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: app.base });
  await app.visit(await server.shell());
  await app.prints("ready>");
  const choose = async (label: string) => {
    await page.mouse.click(...(await pointIn(app)), { button: "right" });
    await page.click(`[data-testid="context-menu"] button:has-text("${label}")`);
    await app.byTestId("context-menu").waitFor({ state: "detached" });
  };
  await page.evaluate(() => navigator.clipboard.writeText("echo pasted $((6 * 7))"));
  await choose("Paste");
  expect(await hasFocus(app)).toBe(true);
  await page.keyboard.press("Enter");
  await app.prints("pasted 42");
  await choose("Select all");
  await choose("Copy");
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await until("all is copied", async () => (await copied()).includes("pasted 42"), copied);
  await choose("Search");
  await page.locator('[aria-label="Search for"]').waitFor();
});

test("R54: a program that uses the mouse gets the right click, unless Shift is held", async () => {
  const app = await open();
  const { page } = app;
  await app.visit(
    await server.new("sh", "-c", "stty raw -echo; printf '\\033[?1000h\\033[?1006hmouse\\r\\n'; exec cat -v"),
  );
  await app.prints("mouse");
  const at = await pointIn(app);
  await page.mouse.click(...at, { button: "right" });
  await app.prints("^[[<2;");
  expect(await app.byTestId("context-menu").count()).toBe(0);
  await page.keyboard.down("Shift");
  await page.mouse.click(...at, { button: "right" });
  await page.keyboard.up("Shift");
  await app.byTestId("context-menu").waitFor();
  await page.keyboard.press("Escape");
  await app.byTestId("context-menu").waitFor({ state: "detached" });
  expect(await hasFocus(app)).toBe(true);
});

test("R54: with copy on select, what the mouse selects is on the clipboard", async () => {
  const app = await open();
  const { page } = app;
  await app.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: app.base });
  await app.visit(await server.new("sh", "-c", "echo one two three; exec cat"));
  await app.prints("three");
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const select = async () => {
    const { x, y } = (await page.locator(".xterm-screen").boundingBox())!;
    await page.mouse.dblclick(x + 45, y + 8);
  };
  await page.evaluate(() => navigator.clipboard.writeText("before"));
  await select();
  await app.waitForPaint();
  expect(await copied()).toBe("before");
  await page.goto(`${app.base}/#/settings`);
  await page.check('label:has-text("Copy on select") input');
  await page.goBack();
  await app.waitForState("open");
  await app.prints("three");
  await select();
  await until("the word is copied", async () => (await copied()) === "two", copied);
});

test("R54: the terminal has the chosen colours and font, which is loaded only then", async () => {
  const app = await open();
  const { page } = app;
  const fonts: string[] = [];
  page.on("request", (request) => {
    if (request.resourceType() === "font") fonts.push(request.url());
  });
  const id = await server.shell();
  await app.visit(id);
  await app.prints("ready>");
  expect(fonts).toEqual([]);
  await page.goto(`${app.base}/#/settings`);
  await page.selectOption('label:has-text("Colours") select', "solarized");
  await page.selectOption('label:has(> span:text-is("Font")) select', "bundled");
  await app.visit(id);
  const { cols } = await app.prints("ready>");
  const look = () =>
    page.evaluate(() => {
      const container = document.querySelector('[data-testid="terminal"]') as HTMLElement & {
        terminal: import("@xterm/xterm").Terminal;
      };
      const { theme, fontFamily } = container.terminal.options;
      return [theme!.background, getComputedStyle(container).backgroundColor, fontFamily!.split(",")[0]];
    });
  const wanted = ["#fdf6e3", "rgb(253, 246, 227)", '"Bowline JetBrains Mono"'];
  await until("the look", async () => JSON.stringify(await look()) === JSON.stringify(wanted), look);
  expect(fonts).toHaveLength(2);
  // The session has the size that fits the font.
  await app.type("stty size\r");
  await until("the size", async () => {
    const state = await app.terminalState();
    return state.text.includes(`${state.rows} ${state.cols}`);
  });
  expect(cols).toBeGreaterThan(80);
  await page.emulateMedia({ colorScheme: "dark" });
  await until("the dark variant", async () => (await look())[0] === "#002b36", look);
});
