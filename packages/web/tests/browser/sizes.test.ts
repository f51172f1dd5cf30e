/** Several windows on one terminal: one of them has the size, all of them type. */
import { expect, test } from "vitest";
import { type App, DESKTOP, PHONE, type Shown, stage } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();

/** The size that the program sees, as the terminal in the page has it. */
async function has(app: App, cols: number, rows: number): Promise<void> {
  const look = async () => {
    const shown = await app.shown();
    return shown.cols === cols && shown.rows === rows;
  };
  await until(`a terminal of ${cols} columns and ${rows} rows`, look, async () => JSON.stringify(await app.shown()));
}

/** Waits until a window that was framed has its own size, and so another than before. */
async function rules(app: App, before: Shown): Promise<Shown> {
  const look = async () => {
    const [shown, framed] = [await app.shown(), await app.page.locator('button:has-text("Use my size")').count()];
    return framed === 0 && (shown.cols !== before.cols || shown.rows !== before.rows) ? shown : undefined;
  };
  return until(`another size than ${before.cols} columns and ${before.rows} rows`, look);
}

/** The terminal is whole within its place, and in the middle of it when it is smaller. */
async function expectInside(app: App): Promise<void> {
  await app.drawn();
  const [place, screen] = await app.page.evaluate(() =>
    ['[data-testid="terminal"]', ".xterm-screen"].map(
      (selector) => document.querySelector(selector)!.getBoundingClientRect().toJSON() as DOMRect,
    ),
  );
  expect(screen!.left).toBeGreaterThanOrEqual(place!.left - 1);
  expect(screen!.top).toBeGreaterThanOrEqual(place!.top - 1);
  expect(screen!.right).toBeLessThanOrEqual(place!.right + 1);
  expect(screen!.bottom).toBeLessThanOrEqual(place!.bottom + 1);
}

test("R23, R26: the first window has the size, the second shows it in a frame, and takes it on a click", async () => {
  const id = await world.shell();
  const first = await open({ screen: DESKTOP });
  await first.visit(id);
  const mine = await first.prints("ready>");
  expect(await first.page.locator('button:has-text("Use my size")').count()).toBe(0);

  const second = await open({ screen: { viewport: { width: 900, height: 500 } } });
  await second.visit(id);
  await has(second, mine.cols, mine.rows);
  await expectInside(second);
  await second.page.waitForSelector("text=Another viewer's size");
  // Each sees that the other is here.
  for (const app of [first, second])
    await app.page.waitForSelector('[data-testid="presence"]:has-text("1 other here")');
  // Both type, into one terminal.
  await first.type("echo one $((1 + 0)); ");
  await second.prints("echo one");
  await second.type("stty size\r");
  await first.prints(`${mine.rows} ${mine.cols}`);

  await second.page.click('button:has-text("Use my size")');
  await first.page.waitForSelector('button:has-text("Use my size")');
  const theirs = await rules(second, mine);
  await has(first, theirs.cols, theirs.rows);
  await expectInside(first);
  // A reload keeps the size: it belongs to the window, not to the connection.
  await second.page.reload();
  await second.state("open");
  await until(
    "it still rules",
    async () => (await second.page.locator('button:has-text("Use my size")').count()) === 0,
  );
  await has(first, theirs.cols, theirs.rows);
  await second.context.close();
  await first.part("presence").waitFor({ state: "detached" });
});

test("R23: the same text is in both after widths changed and changed back", async () => {
  const id = await world.shell();
  const [laptop, phone] = [await open({ screen: DESKTOP }), await open({ screen: PHONE })];
  await laptop.visit(id);
  await laptop.prints("ready>");
  await laptop.type("for i in 1 2 3; do seq -s, $i 90; done; echo don''e\r");
  await laptop.prints(/^done$/m);
  await phone.visit(id);
  await phone.prints(/^done$/m);
  await phone.choose("Use my size");
  await until("the phone's size", async () => (await laptop.shown()).cols < 60);
  await laptop.choose("Use my size");
  await until("the laptop's size", async () => (await phone.shown()).cols > 100);
  await laptop.type("echo agai''n\r");
  await phone.prints(/^again$/m);
  await laptop.prints(/^again$/m);
  // What is still on its way comes to one before the other; then both have the same, and by the session's own account, too.
  const trimmed = (lines: readonly string[]) =>
    lines
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  const sights = async () => {
    const pages = [await laptop.shown(), await phone.shown()].map(({ screen, cursor }) => [trimmed(screen), ...cursor]);
    const own = JSON.parse(await world.bowline("screen", "--format", "json", id)) as {
      lines: { text: string }[];
      cursor: { col: number; row: number };
    };
    return [...pages, [trimmed(own.lines.map(({ text }) => text)), own.cursor.col, own.cursor.row]].map((sight) =>
      sight.join("\n"),
    );
  };
  await until(
    "all three show the same",
    async () => new Set(await sights()).size === 1,
    async () => (await sights()).join("\n----\n"),
  );
});

test("R23: a window that grows and shrinks takes the program with it, and a device remembers that its size is to rule", async () => {
  const id = await world.new("sh", "-c", "trap 'stty size' WINCH; stty size; while :; do read x; done");
  const app = await open();
  await app.visit(id);
  const before = await app.prints(/^\d+ \d+$/m);
  await app.page.setViewportSize({ width: 800, height: 600 });
  const after = await until("the program has the smaller size", async () => {
    const shown = await app.shown();
    return shown.cols < before.cols && shown.text.split("\n").includes(`${shown.rows} ${shown.cols}`)
      ? shown
      : undefined;
  });

  const other = await open({ screen: { viewport: { width: 1000, height: 700 } } });
  await other.visit(id);
  await other.page.click('button:has-text("Use my size")');
  const theirs = await rules(other, after);
  await app.page.click('button:has-text("Use my size")');
  await has(other, after.cols, after.rows);
  // The next time it is opened there, it has that device's size without a word.
  await other.page.goto("about:blank");
  await other.visit(id);
  await has(app, theirs.cols, theirs.rows);
  // Each change was one: the program never had a size in between.
  const { text } = await app.prints(
    new RegExp(`^${theirs.rows} ${theirs.cols}$(?![^]*^${after.rows} ${after.cols}$)`, "m"),
  );
  const sizes = [before, after, theirs].map(({ cols, rows }) => `${rows} ${cols}`);
  expect(text.split("\n").filter((size) => !["24 80", ...sizes].includes(size))).toEqual([]);
});
