/** Tests several windows on one terminal: one owns the size, all can type. */
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE, type TerminalState } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** An init script for a device on which typing does not set the size. */
function keepSize(): void {
  localStorage.setItem("bowline.settings", JSON.stringify({ sizeFollowsTyping: false }));
}

/** Waits until the terminal has this size. */
async function waitForSize(app: App, cols: number, rows: number): Promise<void> {
  const check = async () => {
    const state = await app.terminalState();
    return state.cols === cols && state.rows === rows;
  };
  await until(`a terminal of ${cols} columns and ${rows} rows`, check, async () =>
    JSON.stringify(await app.terminalState()),
  );
}

/** Waits until a framed window owns the size, and the size has changed from `before`. */
async function waitForOwnSize(app: App, before: TerminalState): Promise<TerminalState> {
  const check = async () => {
    const [state, framed] = [
      await app.terminalState(),
      await app.page.locator('button:has-text("Use my size")').count(),
    ];
    return framed === 0 && (state.cols !== before.cols || state.rows !== before.rows) ? state : undefined;
  };
  return until(`another size than ${before.cols} columns and ${before.rows} rows`, check);
}

/** Checks that the whole terminal is within its container. */
async function expectInside(app: App): Promise<void> {
  await app.waitForPaint();
  const [container, screen] = await app.page.evaluate(() =>
    ['[data-testid="terminal"]', ".xterm-screen"].map(
      (selector) => document.querySelector(selector)!.getBoundingClientRect().toJSON() as DOMRect,
    ),
  );
  expect(screen!.left).toBeGreaterThanOrEqual(container!.left - 1);
  expect(screen!.top).toBeGreaterThanOrEqual(container!.top - 1);
  expect(screen!.right).toBeLessThanOrEqual(container!.right + 1);
  expect(screen!.bottom).toBeLessThanOrEqual(container!.bottom + 1);
}

test("R23, R26: the first window owns the size, the second shows it in a frame, and claims it on a click", async () => {
  const id = await server.shell();
  const first = await open({ screen: DESKTOP });
  await first.visit(id);
  const mine = await first.prints("ready>");
  expect(await first.page.locator('button:has-text("Use my size")').count()).toBe(0);

  const second = await open({ screen: { viewport: { width: 900, height: 500 } }, initScript: keepSize });
  await second.visit(id);
  await waitForSize(second, mine.cols, mine.rows);
  await expectInside(second);
  await second.page.waitForSelector("text=Size set by another viewer");
  // Each shows the other viewer.
  for (const app of [first, second])
    await app.page.waitForSelector('[data-testid="presence"]:has-text("1 other viewer")');
  // Both type into the same terminal.
  await first.type("echo one $((1 + 0)); ");
  await second.prints("echo one");
  await second.type("stty size\r");
  await first.prints(`${mine.rows} ${mine.cols}`);

  await second.page.click('button:has-text("Use my size")');
  await first.page.waitForSelector('button:has-text("Use my size")');
  const theirs = await waitForOwnSize(second, mine);
  await waitForSize(first, theirs.cols, theirs.rows);
  await expectInside(first);
  // Ownership of the size survives a reload.
  await second.page.reload();
  await second.waitForState("open");
  await until(
    "it still owns the size",
    async () => (await second.page.locator('button:has-text("Use my size")').count()) === 0,
  );
  await waitForSize(first, theirs.cols, theirs.rows);
  await second.context.close();
  await first.byTestId("presence").waitFor({ state: "detached" });
});

test("R23: both windows have the same text after the width changed twice", async () => {
  const id = await server.shell();
  const [laptop, phone] = [
    await open({ screen: DESKTOP, initScript: keepSize }),
    await open({ screen: PHONE, initScript: keepSize }),
  ];
  await laptop.visit(id);
  await laptop.prints("ready>");
  await laptop.type("for i in 1 2 3; do seq -s, $i 90; done; echo don''e\r");
  await laptop.prints(/^done$/m);
  await phone.visit(id);
  await phone.prints(/^done$/m);
  await phone.choose("Use my size");
  await until("the phone's size", async () => (await laptop.terminalState()).cols < 60);
  await laptop.choose("Use my size");
  await until("the laptop's size", async () => (await phone.terminalState()).cols > 100);
  await laptop.type("echo agai''n\r");
  await phone.prints(/^again$/m);
  await laptop.prints(/^again$/m);
  // Pending output reaches one page before the other; then both show the same as the session.
  const trimmed = (lines: readonly string[]) =>
    lines
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  const screens = async () => {
    const pages = [await laptop.terminalState(), await phone.terminalState()].map(({ screen, cursor }) => [
      trimmed(screen),
      ...cursor,
    ]);
    const own = JSON.parse(await server.bowline("screen", "--format", "json", id)) as {
      lines: { text: string }[];
      cursor: { col: number; row: number };
    };
    return [...pages, [trimmed(own.lines.map(({ text }) => text)), own.cursor.col, own.cursor.row]].map((lines) =>
      lines.join("\n"),
    );
  };
  await until(
    "all three show the same",
    async () => new Set(await screens()).size === 1,
    async () => (await screens()).join("\n----\n"),
  );
});

test("R23: the size follows the viewer who types, but not one who scrolls", async () => {
  const id = await server.new("sh", "-c", "printf '\\033[?1049hpage\\r\\n'; stty raw -echo; exec cat -v");
  const [laptop, phone] = [await open({ screen: DESKTOP }), await open({ screen: PHONE })];
  await laptop.visit(id);
  const mine = await laptop.prints("page");
  await phone.visit(id);
  await waitForSize(phone, mine.cols, mine.rows);
  // On the alternate screen, a wheel sends arrow keys.
  await phone.page.evaluate(() =>
    document
      .querySelector(".xterm-screen")!
      .dispatchEvent(new WheelEvent("wheel", { deltaY: 200, bubbles: true, cancelable: true })),
  );
  await laptop.prints("^[");
  expect(await laptop.terminalState()).toMatchObject({ cols: mine.cols, rows: mine.rows });
  await phone.type("p");
  await until("the phone's size", async () => (await laptop.terminalState()).cols < 60);
  expect(await phone.page.locator('button:has-text("Use my size")').count()).toBe(0);
  await laptop.type("l");
  await waitForSize(phone, mine.cols, mine.rows);
  // Keys of the key row count as typing.
  await phone.page.tap('[data-testid="key-row"] [aria-label="Escape"]');
  await until("the phone's size again", async () => (await laptop.terminalState()).cols < 60);
});

test("R23: a page that is closed gives up the size at once, and one that comes back takes it again", async () => {
  const id = await server.shell();
  const [laptop, phone] = [await open({ screen: DESKTOP }), await open({ screen: PHONE })];
  await laptop.visit(id);
  const mine = await laptop.prints("ready>");
  await phone.visit(id);
  await waitForSize(phone, mine.cols, mine.rows);
  // Within the time that a dropped owner keeps the size.
  await laptop.page.goto("about:blank");
  await until("the phone's size", async () => (await phone.terminalState()).cols < 60);
  // A page from the back/forward cache does not load again.
  await laptop.page.goBack({ waitUntil: "commit" });
  await laptop.waitForState("open");
  await waitForSize(phone, mine.cols, mine.rows);
  await laptop.page.reload();
  await laptop.waitForState("open");
  await waitForSize(laptop, mine.cols, mine.rows);
  await laptop.page.close();
  await until("the phone's size again", async () => (await phone.terminalState()).cols < 60);
});

test("R23: a claimed size is no setting of the device", async () => {
  const id = await server.shell();
  const [first, second] = [await open(), await open({ screen: { viewport: { width: 900, height: 500 } } })];
  await first.visit(id);
  const before = await first.prints("ready>");
  await second.visit(id);
  await second.page.click('button:has-text("Use my size")');
  await waitForOwnSize(second, before);
  await second.page.goto(`${second.base}/#/settings`);
  expect(await second.page.isChecked('label:has-text("Use my size") input')).toBe(false);
});

test("R23: the program is resized with the window, and with the window of a device that always uses its own size", async () => {
  const id = await server.new("sh", "-c", "trap 'stty size' WINCH; stty size; while :; do read x; done");
  const app = await open();
  await app.visit(id);
  const before = await app.prints(/^\d+ \d+$/m);
  await app.page.setViewportSize({ width: 800, height: 600 });
  const after = await until("the program has the smaller size", async () => {
    const shown = await app.terminalState();
    return shown.cols < before.cols && shown.text.split("\n").includes(`${shown.rows} ${shown.cols}`)
      ? shown
      : undefined;
  });

  const other = await open({ screen: { viewport: { width: 1000, height: 700 } } });
  await other.page.goto(`${other.base}/#/settings`);
  await other.page.check('label:has-text("Use my size") input');
  await other.visit(id);
  const theirs = await waitForOwnSize(other, after);
  await app.page.click('button:has-text("Use my size")');
  await waitForSize(other, after.cols, after.rows);
  // The next time, the session is resized to that device without a click.
  await other.page.goto("about:blank");
  await other.visit(id);
  await waitForSize(app, theirs.cols, theirs.rows);
  // There was no intermediate size.
  const { text } = await app.prints(
    new RegExp(`^${theirs.rows} ${theirs.cols}$(?![^]*^${after.rows} ${after.cols}$)`, "m"),
  );
  const sizes = [before, after, theirs].map(({ cols, rows }) => `${rows} ${cols}`);
  expect(text.split("\n").filter((size) => !["24 80", ...sizes].includes(size))).toEqual([]);
});
