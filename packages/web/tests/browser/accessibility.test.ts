/** Tests accessibility: names of controls, focus order, contrast, and screen readers. */
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { server, open, blank } = browserSuite();

/** Checks that every control has a name in the browser's accessibility tree. */
async function expectNames(app: App, view: string): Promise<void> {
  const devtools = await app.context.newCDPSession(app.page);
  const { nodes } = await devtools.send("Accessibility.getFullAXTree");
  const operable = nodes.filter(
    ({ ignored, role }) =>
      !ignored &&
      /^(button|link|textbox|menuitem|checkbox|combobox|spinbutton|dialog|switch)$/.test(String(role?.value)),
  );
  expect(operable.length, view).toBeGreaterThan(0);
  expect(
    operable
      .filter(({ name }) => !String(name?.value ?? "").trim())
      .map(({ role }) => `${view}: ${String(role?.value)}`),
  ).toEqual([]);
  await devtools.detach();
}

/** Checks that no text outside the terminal has a contrast below 4.5. */
async function expectContrast({ page }: App, view: string): Promise<void> {
  const weak = await page.evaluate(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
    const rgba = (colour: string): number[] => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
    };
    const over = (top: number[], below: number[]) =>
      [0, 1, 2].map((at) => top[at]! * top[3]! + below[at]! * (1 - top[3]!)).concat(1);
    const behind = (element: Element | null): number[] => {
      if (!element) return [1, 1, 1, 1];
      const own = rgba(getComputedStyle(element).backgroundColor);
      return own[3]! >= 0.999 ? own : over(own, behind(element.parentElement));
    };
    const light = (colour: number[]) => {
      const [red, green, blue] = colour.map((part) =>
        part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
    };
    const ratio = (one: number[], other: number[]) => {
      const [more, less] = [light(one), light(other)].sort((a, b) => b - a);
      return (more! + 0.05) / (less! + 0.05);
    };
    const found: string[] = [];
    const root = document.querySelector("dialog") ?? document.body;
    for (const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT); walker.nextNode();) {
      const text = walker.currentNode.textContent?.trim();
      const element = walker.currentNode.parentElement;
      if (
        !text ||
        !element ||
        element.closest(".xterm, .sr-only, :disabled, script, style, noscript") ||
        !element.checkVisibility()
      )
        continue;
      const background = behind(element);
      const contrast = ratio(over(rgba(getComputedStyle(element).color), background), background);
      if (contrast < 4.5) found.push(`${contrast.toFixed(2)}: ${text}`);
    }
    return found;
  });
  expect(weak.map((text) => `${view}: ${text}`)).toEqual([]);
}

test.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])(
  "R54: on %s, every control of every view has a name, and text is readable in light and dark",
  { timeout: 240_000 },
  async (_, screen) => {
    const check = async (app: App, view: string) => {
      await expectNames(app, view);
      for (const colorScheme of ["light", "dark"] as const) {
        await app.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await app.page.waitForSelector(`html${colorScheme === "dark" ? ".dark" : ":not(.dark)"}`);
        await app.waitForPaint();
        await expectContrast(app, `${view}, ${colorScheme}`);
      }
    };
    const login = await blank({ screen, networkErrors: true });
    await login.page.goto(login.base);
    await login.page.waitForSelector("text=Log in to");
    await check(login, "login");

    const app = await open({ screen });
    const { page } = app;
    await page.waitForSelector("text=No sessions yet");
    await check(app, "empty board");
    const failed = await server.new("sh", "-c", "exit 3");
    const calling = await server.new("sh", "-c", "printf '\\033]9;look\\007'; exec sleep 1000");
    const id = await server.shell("shell");
    for (const session of [failed, calling, id]) await page.waitForSelector(`[data-session="${session}"]`);
    await page.waitForSelector('[data-testid="attention"]');
    await check(app, "board");
    await page.click("text=New session >> nth=0");
    await page.waitForSelector("dialog");
    await check(app, "new session");
    await page.keyboard.press("Escape");
    await app.visit(id);
    await app.prints("ready>");
    await check(app, "terminal");
    await page.click('[aria-label="Session menu"]');
    await page.waitForSelector('[role="menu"]');
    await check(app, "menu");
    await page.keyboard.press("Escape");
    await app.choose("End");
    await page.waitForSelector("dialog");
    await check(app, "end");
    await page.keyboard.press("Escape");
    for (const [route, title] of [
      ["settings", "Settings"],
      ["help", "Help and shortcuts"],
    ] as const) {
      await page.goto(`${app.base}/#/${route}`);
      await page.waitForSelector(`h1:text-is("${title}")`);
      await check(app, route);
    }
  },
);

test("R54: the keyboard alone is enough, the focus follows the reading order, and can leave the terminal", async () => {
  const app = await open();
  const { page } = app;
  const id = await server.shell("shell");
  await page.waitForSelector(`[data-session="${id}"]`);
  const focused = () =>
    page.evaluate(
      () => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent?.trim() ?? "",
    );
  const order: string[] = [];
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  for (let tab = 0; tab < 5; tab++) {
    await page.keyboard.press("Tab");
    order.push(await focused());
  }
  expect(order).toEqual([
    "Approvals: none open",
    "New session",
    "Menu",
    expect.stringContaining("shell"),
    "Actions for shell",
  ]);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await app.waitForState("open");
  // A terminal handles all keys, including Tab.
  await until("the terminal has the focus", () =>
    page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea")),
  );
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea"))).toBe(true);
  await page.keyboard.press("Control+Shift+E");
  expect(await focused()).toBe("Back to the board");
  // The focus is visible.
  expect(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle)).toBe("solid");
  await page.keyboard.press("Enter");
  await page.waitForSelector(`[data-session="${id}"]`);
  // A dialog traps the focus and restores it.
  await page.keyboard.press("n");
  await page.waitForSelector("dialog[open]");
  expect(await page.evaluate(() => document.activeElement?.closest("dialog") !== null)).toBe(true);
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
});

test("R54: with screen reader support enabled, output is announced", async () => {
  const app = await open();
  await app.page.goto(`${app.base}/#/settings`);
  await app.page.check('label:has-text("Screen reader") input');
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.type("echo spoken $((9 * 9))\r");
  await app.page.locator(".xterm-accessibility-tree >> text=spoken 81").waitFor({ state: "attached" });
});

test("R54: the app can be installed, and the service worker caches the app's files but no API responses", async () => {
  const app = await open();
  const { page } = app;
  const manifest = await page.evaluate(async () => {
    const link = document.querySelector<HTMLLinkElement>('link[rel="manifest"]')!;
    return (await (await fetch(link.href)).json()) as {
      start_url: string;
      display: string;
      icons: { src: string; sizes: string }[];
    };
  });
  expect(manifest.display).toBe("standalone");
  expect(manifest.icons.map(({ sizes }) => sizes)).toEqual(expect.arrayContaining(["192x192", "512x512"]));
  await page.evaluate(() => navigator.serviceWorker.ready);
  const cached = await page.evaluate(async () => {
    const caches_ = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
    return (await Promise.all(caches_.map((cache) => cache.keys()))).flat().map(({ url }) => new URL(url).pathname);
  });
  expect(cached).toContain("/");
  expect(cached.filter((path) => path !== "/" && !path.startsWith("/assets/"))).toEqual([]);
});
