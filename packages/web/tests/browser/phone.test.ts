/** A phone in the hand: keys that its keyboard lacks, a field for the thumb, and a page that holds still. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, PHONE, stage } from "./parts/app.ts";
import { clockOf, holdClock } from "./parts/clock.ts";
import { until } from "./parts/until.ts";

const { world, open, blank } = stage();

/** A program that writes down every byte that it gets. */
async function listen(app: App, name: string, before = ""): Promise<() => string> {
  const file = join(world.folder, name);
  await app.visit(
    await world.new("sh", "-c", `stty raw -echo; : >${file}; printf '${before}ready\\r\\n'; exec cat >${file}`),
  );
  await app.prints("ready");
  return () => readFileSync(file, "latin1");
}

async function gets(heard: () => string, bytes: string): Promise<void> {
  await until(
    `the program got ${JSON.stringify(bytes)}`,
    () => heard() === bytes,
    () => JSON.stringify(heard()),
  );
}

/** Nothing is wider than the screen. */
async function expectNoSideways({ page }: App): Promise<void> {
  const [wide, room] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  expect(wide).toBeLessThanOrEqual(room);
}

test("R54: the key row sends Esc, Tab, Ctrl-C, arrows and what the modifiers make of a letter", async () => {
  const app = await open({ screen: PHONE, before: holdClock });
  const { page } = app;
  const heard = await listen(app, "keys");
  // A key that is held repeats after some time: none passes, however long a tap takes here.
  await clockOf(app).stop();
  let all = "";
  const getsMore = (bytes: string) => gets(heard, (all += bytes));
  const key = (name: string) => page.tap(`[data-testid="key-row"] [aria-label="${name}"]`);
  const keys = [
    ["Escape", "\x1b"],
    ["Tab", "\t"],
    ["Control C", "\x03"],
    ["Up", "\x1b[A"],
    ["Down", "\x1b[B"],
    ["Right", "\x1b[C"],
    ["Left", "\x1b[D"],
  ] as const;
  for (const [name, bytes] of keys) {
    await key(name);
    await getsMore(bytes);
  }
  // The click comes after the tap.
  const modifier = async (name: string, becomes: "off" | "once" | "locked") => {
    await key(name);
    await page.waitForSelector(`[aria-label="${name}"][aria-pressed="${becomes !== "off"}"].${becomes}`);
  };
  // Down for one key, locked, and up again.
  await modifier("Control", "once");
  await app.type("dx");
  await getsMore("\x04x");
  await page.waitForSelector('[aria-label="Control"][aria-pressed="false"]');
  await modifier("Control", "once");
  await modifier("Control", "locked");
  await app.type("ab");
  await modifier("Control", "off");
  await modifier("Alt", "once");
  await app.type("f");
  await getsMore("\x01\x02\x1bf");
  await expectNoSideways(app);
});

test("R54: arrows are of the kind that the program asked for", async () => {
  const app = await open({ screen: PHONE, before: holdClock });
  const heard = await listen(app, "application", "\\033[?1h");
  await clockOf(app).stop();
  await app.page.tap('[data-testid="key-row"] [aria-label="Up"]');
  await gets(heard, "\x1bOA");
});

test("R54: the composer sends a text in one piece, with or without Enter", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  const heard = await listen(app, "composed", "\\033[?2004h");
  await page.tap('[aria-label="Text field"]');
  await page.fill('textarea[aria-label="Text"]', "Grüße vom\nDaumen ✓");
  await page.tap('[aria-label="Send without Enter"]');
  const utf8 = (text: string) => Buffer.from(text).toString("latin1");
  await gets(heard, utf8("\x1b[200~Grüße vom\rDaumen ✓\x1b[201~"));
  expect(await page.inputValue('textarea[aria-label="Text"]')).toBe("");
  await page.fill('textarea[aria-label="Text"]', "ls");
  await page.tap('[aria-label="Send with Enter"]');
  await gets(heard, utf8("\x1b[200~Grüße vom\rDaumen ✓\x1b[201~\x1b[200~ls\x1b[201~\r"));
  await expectNoSideways(app);
  await page.tap('[aria-label="Close the text field"]');
  await app.part("composer").waitFor({ state: "detached" });
});

test("R16: a text that is more than can wait stays in the composer, and its Enter is not sent", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  const heard = await listen(app, "refused", "\\033[?2004h");
  await page.tap('[aria-label="Text field"]');
  const field = page.locator('textarea[aria-label="Text"]');
  await field.evaluate((field: HTMLTextAreaElement) => {
    // To lay this much text out would take seconds.
    field.hidden = true;
    field.value = "x".repeat(9 << 20);
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  });
  await page.tap('[aria-label="Send with Enter"]');
  await page.waitForSelector("text=This is more than can wait to be sent");
  const kept = await field.evaluate((field: HTMLTextAreaElement) => {
    const { length } = field.value;
    field.value = "";
    field.hidden = false;
    return length;
  });
  expect(kept).toBe(9 << 20);
  await field.fill("ls");
  await page.tap('[aria-label="Send with Enter"]');
  await gets(heard, "\x1b[200~ls\x1b[201~\r");
});

test.each([
  ["a phone", PHONE],
  ["a laptop", {}],
] as const)("R54: nothing moves on %s while somebody types and the program prints", async (_, screen) => {
  const app = await open({ screen });
  const { page } = app;
  await app.visit(await world.shell());
  await app.prints("ready>");
  await app.focus();
  await app.drawn();
  await page.evaluate(() => {
    const moved: string[] = [];
    // The scroll bar is to move with the text.
    const nameOf = (node: Node | null) =>
      node instanceof Element && node.closest(".xterm .scrollbar")
        ? []
        : [node instanceof Element ? node.outerHTML : (node?.nodeName ?? "removed")];
    new PerformanceObserver((list) => {
      const shifts = list.getEntries() as unknown as { sources: { node: Node | null }[] }[];
      moved.push(...shifts.flatMap(({ sources }) => sources.flatMap(({ node }) => nameOf(node))));
    }).observe({ type: "layout-shift" });
    Object.assign(window, { moved });
  });
  await app.type("for i in $(seq 100); do echo a line of output $i; read -rt 0.01; done; echo finishe''d\r");
  await app.prints(/^finished$/m);
  await app.drawn();
  expect(await page.evaluate(() => (window as unknown as { moved: string[] }).moved)).toEqual([]);
});

test("R54: no view is wider than the phone", async () => {
  const login = await blank({ screen: PHONE, rough: true });
  await login.page.goto(login.base);
  await login.page.waitForSelector("text=Log in to");
  await expectNoSideways(login);
  const app = await open({ screen: PHONE });
  const { page } = app;
  const long = await world.bowline(
    "new",
    "--detach",
    "--name",
    "a-name-that-is-as-long-as-names-may-be-and-a-little-longer.0",
    "--",
    "sleep",
    "1000",
  );
  await page.waitForSelector(`[data-session="${long}"]`);
  await expectNoSideways(app);
  await page.tap("text=New session >> nth=0");
  await page.waitForSelector("dialog");
  await expectNoSideways(app);
  await page.keyboard.press("Escape");
  await app.visit(long);
  await expectNoSideways(app);
  await page.tap('[aria-label="Session menu"]');
  await page.waitForSelector('[role="menu"]');
  await expectNoSideways(app);
  for (const [place, title] of [
    ["settings", "Settings"],
    ["help", "Keys and help"],
  ]) {
    await page.goto(`${app.base}/#/${place}`);
    await page.waitForSelector(`h1:text-is("${title}")`);
    await expectNoSideways(app);
  }
});

test("R54: nothing is under the notch or the home bar", async () => {
  const app = await open({ screen: PHONE });
  const devtools = await app.context.newCDPSession(app.page);
  const insets = { top: 47, bottom: 34, left: 0, right: 0 };
  await devtools.send("Emulation.setSafeAreaInsetsOverride" as "Emulation.setCPUThrottlingRate", { insets } as never);
  await app.visit(await world.shell());
  await app.prints("ready>");
  await app.drawn();
  const box = async (selector: string) => (await app.page.locator(selector).first().boundingBox())!;
  const row = await box('[data-testid="key-row"] button');
  expect(row.y + row.height).toBeLessThanOrEqual(844 - insets.bottom);
  expect((await box('[aria-label="Back to the board"]')).y).toBeGreaterThanOrEqual(insets.top);
  await app.page.tap('[aria-label="Back to the board"]');
  await app.drawn();
  expect((await box("button:has-text('New session')")).y).toBeGreaterThanOrEqual(insets.top);
});

test("R54: a finger scrolls the terminal, two change the font size, and the page itself stays", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  await app.visit(await world.new("sh", "-c", "seq 500; exec cat"));
  await app.prints(/^500$/m);
  await app.drawn();
  const devtools = await app.context.newCDPSession(page);
  const touch = (type: string, ...points: [number, number][]) =>
    devtools.send("Input.dispatchTouchEvent", {
      type: type as "touchStart",
      touchPoints: points.map(([x, y], id) => ({ x, y, id })),
    });
  const at = () =>
    page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: import("@xterm/xterm").Terminal;
      };
      return [terminal.buffer.active.viewportY, terminal.options.fontSize!] as const;
    });
  const [bottom, font] = await at();
  await touch("touchStart", [200, 300]);
  for (let y = 320; y <= 500; y += 20) await touch("touchMove", [200, y]);
  await touch("touchEnd");
  await until("it scrolled up", async () => (await at())[0] < bottom);
  await touch("touchStart", [150, 300], [250, 300]);
  for (let by = 10; by <= 60; by += 10) await touch("touchMove", [150 - by, 300], [250 + by, 300]);
  await touch("touchEnd");
  await until("a larger font", async () => (await at())[1] > font);
  const [, larger] = await at();
  await touch("touchStart", [100, 300], [300, 300]);
  for (let by = 10; by <= 60; by += 10) await touch("touchMove", [100 + by, 300], [300 - by, 300]);
  await touch("touchEnd");
  await until("a smaller font", async () => (await at())[1] < larger);
  expect(await page.evaluate(() => [window.visualViewport!.scale, scrollX, scrollY])).toEqual([1, 0, 0]);
});
