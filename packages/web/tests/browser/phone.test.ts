/** Tests the app on a phone: the key row, the text field, touch gestures and the layout. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, browserSuite, PHONE } from "./parts/app.ts";
import { clockOf, controlClock } from "./parts/clock.ts";
import { until } from "./parts/until.ts";

const { server, open, blank } = browserSuite();

/** Starts a program that writes its input to a file. Returns a function that reads that file. */
async function recordInput(app: App, name: string, before = ""): Promise<() => string> {
  const file = join(server.folder, name);
  await app.visit(
    await server.new("sh", "-c", `stty raw -echo; : >${file}; printf '${before}ready\\r\\n'; exec cat >${file}`),
  );
  await app.prints("ready");
  return () => readFileSync(file, "latin1");
}

async function waitForInput(input: () => string, bytes: string): Promise<void> {
  await until(
    `the program reads ${JSON.stringify(bytes)}`,
    () => input() === bytes,
    () => JSON.stringify(input()),
  );
}

/** Checks that nothing is wider than the screen. */
async function expectNoHorizontalScroll({ page }: App): Promise<void> {
  const [width, available] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  expect(width).toBeLessThanOrEqual(available);
}

test("R54: the key row sends Esc, Tab, Ctrl-C, arrows, and letters with modifiers", async () => {
  const app = await open({ screen: PHONE, initScript: controlClock });
  const { page } = app;
  const input = await recordInput(app, "keys");
  // Stop the clock, so that no key repeats even if a tap is slow.
  await clockOf(app).stop();
  let all = "";
  const waitForMore = (bytes: string) => waitForInput(input, (all += bytes));
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
    await waitForMore(bytes);
  }
  // The click event follows the tap.
  const modifier = async (name: string, becomes: "off" | "once" | "locked") => {
    await key(name);
    await page.waitForSelector(`[aria-label="${name}"][aria-pressed="${becomes !== "off"}"].${becomes}`);
  };
  // On for one key, then locked, then off.
  await modifier("Control", "once");
  await app.type("dx");
  await waitForMore("\x04x");
  await page.waitForSelector('[aria-label="Control"][aria-pressed="false"]');
  await modifier("Control", "once");
  await modifier("Control", "locked");
  await app.type("ab");
  await modifier("Control", "off");
  await modifier("Alt", "once");
  await app.type("f");
  await waitForMore("\x01\x02\x1bf");
  await expectNoHorizontalScroll(app);
});

test("R54: Control C and Paste are on the first screen of the key row", async () => {
  const app = await open({ screen: PHONE });
  await app.visit(await server.shell());
  await app.prints("ready>");
  const { x, width } = (await app.page.locator('[data-testid="key-row"] .keys').boundingBox())!;
  for (const name of ["Escape", "Tab", "Control", "Control C", "Up", "Down", "Left", "Right", "Paste"]) {
    const key = (await app.page.locator(`[data-testid="key-row"] [aria-label="${name}"]`).boundingBox())!;
    expect([name, key.x + key.width <= x + width]).toEqual([name, true]);
    expect(key.height).toBeGreaterThanOrEqual(44);
  }
});

test.each([
  ["a phone", PHONE],
  ["a laptop", {}],
] as const)("R54: on %s, the text field does not resize the program, nor hide its cursor", async (_, screen) => {
  const app = await open({ screen });
  const { page } = app;
  await app.visit(
    await server.new("sh", "-c", "trap 'echo resized' WINCH; seq 200; while :; do read x && echo got $x; done"),
  );
  // The program gets the size of the window when it is attached.
  const { cols, rows } = await app.prints(/^200\nresized$/m);
  const boxes = () =>
    page.evaluate(() => {
      const [text, cursor] = [".xterm-rows", ".xterm-cursor"].map((name) => document.querySelector(name)!);
      const composer = document.querySelector('[data-testid="composer"]');
      return {
        top: text!.getBoundingClientRect().top,
        cursor: cursor!.getBoundingClientRect().bottom,
        composer: composer?.getBoundingClientRect().top ?? 0,
      };
    });
  const before = await boxes();
  if (screen === PHONE) await page.tap('[aria-label="Text field"]');
  else await app.choose("Open text field");
  await until("the cursor is above the text field", async () => {
    const { cursor, composer } = await boxes();
    return composer > 0 && cursor <= composer + 1;
  });
  await page.fill('textarea[aria-label="Text"]', "ls");
  await page.click('[aria-label="Send with Enter"]');
  const { text, ...after } = await app.prints("got ls");
  expect(text.match(/resized/g)).toHaveLength(1);
  expect(after).toMatchObject({ cols, rows });
  await page.click('[aria-label="Close text field"]');
  await until("the terminal is where it was", async () => (await boxes()).top === before.top);
});

test("R54: arrow keys respect the application cursor mode", async () => {
  const app = await open({ screen: PHONE, initScript: controlClock });
  const input = await recordInput(app, "application", "\\033[?1h");
  await clockOf(app).stop();
  await app.page.tap('[data-testid="key-row"] [aria-label="Up"]');
  await waitForInput(input, "\x1bOA");
});

test("R54: the text field sends its text in one piece, with or without Enter", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  const input = await recordInput(app, "composed", "\\033[?2004h");
  await page.tap('[aria-label="Text field"]');
  await page.fill('textarea[aria-label="Text"]', "Grüße vom\nDaumen ✓");
  await page.tap('[aria-label="Send without Enter"]');
  const utf8 = (text: string) => Buffer.from(text).toString("latin1");
  await waitForInput(input, utf8("\x1b[200~Grüße vom\rDaumen ✓\x1b[201~"));
  expect(await page.inputValue('textarea[aria-label="Text"]')).toBe("");
  await page.fill('textarea[aria-label="Text"]', "ls");
  await page.tap('[aria-label="Send with Enter"]');
  await waitForInput(input, utf8("\x1b[200~Grüße vom\rDaumen ✓\x1b[201~\x1b[200~ls\x1b[201~\r"));
  await expectNoHorizontalScroll(app);
  await page.tap('[aria-label="Close text field"]');
  await app.byTestId("composer").waitFor({ state: "detached" });
});

test("R16: text that is too large to queue stays in the text field, and its Enter is not sent", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  const input = await recordInput(app, "refused", "\\033[?2004h");
  await page.tap('[aria-label="Text field"]');
  const field = page.locator('textarea[aria-label="Text"]');
  await field.evaluate((field: HTMLTextAreaElement) => {
    // The layout of this much text would take seconds.
    field.hidden = true;
    field.value = "x".repeat(9 << 20);
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  });
  await page.tap('[aria-label="Send with Enter"]');
  await page.waitForSelector("text=The input is too large to queue");
  const length = await field.evaluate((field: HTMLTextAreaElement) => {
    const { length } = field.value;
    field.value = "";
    field.hidden = false;
    return length;
  });
  expect(length).toBe(9 << 20);
  await field.fill("ls");
  await page.tap('[aria-label="Send with Enter"]');
  await waitForInput(input, "\x1b[200~ls\x1b[201~\r");
});

test.each([
  ["a phone", PHONE],
  ["a laptop", {}],
] as const)("R54: on %s, nothing moves while the user types and the program prints", async (_, screen) => {
  const app = await open({ screen });
  const { page } = app;
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.focus();
  await app.waitForPaint();
  await page.evaluate(() => {
    const moved: string[] = [];
    // The scroll bar may move with the text.
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
  await app.waitForPaint();
  expect(await page.evaluate(() => (window as unknown as { moved: string[] }).moved)).toEqual([]);
});

test("R54: no view is wider than the phone", async () => {
  const login = await blank({ screen: PHONE, networkErrors: true });
  await login.page.goto(login.base);
  await login.page.waitForSelector("text=Log in to");
  await expectNoHorizontalScroll(login);
  const app = await open({ screen: PHONE });
  const { page } = app;
  const long = await server.bowline(
    "new",
    "--detach",
    "--name",
    "a-name-that-is-as-long-as-names-may-be-and-a-little-longer.0",
    "--",
    "sleep",
    "1000",
  );
  await page.waitForSelector(`[data-session="${long}"]`);
  await expectNoHorizontalScroll(app);
  await page.tap("text=New session >> nth=0");
  await page.waitForSelector("dialog");
  await expectNoHorizontalScroll(app);
  await page.keyboard.press("Escape");
  await app.visit(long);
  await expectNoHorizontalScroll(app);
  await page.tap('[aria-label="Session menu"]');
  await page.waitForSelector('[role="menu"]');
  await expectNoHorizontalScroll(app);
  for (const [route, title] of [
    ["settings", "Settings"],
    ["help", "Help and shortcuts"],
  ]) {
    await page.goto(`${app.base}/#/${route}`);
    await page.waitForSelector(`h1:text-is("${title}")`);
    await expectNoHorizontalScroll(app);
  }
});

test("R54: nothing is under the notch or the home bar", async () => {
  const app = await open({ screen: PHONE });
  const devtools = await app.context.newCDPSession(app.page);
  const insets = { top: 47, bottom: 34, left: 0, right: 0 };
  await devtools.send("Emulation.setSafeAreaInsetsOverride" as "Emulation.setCPUThrottlingRate", { insets } as never);
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.waitForPaint();
  const box = async (selector: string) => (await app.page.locator(selector).first().boundingBox())!;
  const row = await box('[data-testid="key-row"] button');
  expect(row.y + row.height).toBeLessThanOrEqual(844 - insets.bottom);
  expect((await box('[aria-label="Back to the board"]')).y).toBeGreaterThanOrEqual(insets.top);
  await app.page.tap('[aria-label="Back to the board"]');
  await app.waitForPaint();
  expect((await box("button:has-text('New session')")).y).toBeGreaterThanOrEqual(insets.top);
});

test("R54: one finger scrolls the terminal, two change the font size, and the page itself does not move", async () => {
  const app = await open({ screen: PHONE });
  const { page } = app;
  await app.visit(await server.new("sh", "-c", "seq 500; exec cat"));
  await app.prints(/^500$/m);
  await app.waitForPaint();
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
