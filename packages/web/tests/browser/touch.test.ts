/** Tests touch on a phone: held keys, and terminals larger than their container. */
import { expect, test } from "vitest";
import { type App, browserSuite, PHONE } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Returns a function that dispatches touch events with these points. */
async function touchDispatcher(
  app: App,
): Promise<(type: "touchStart" | "touchMove" | "touchEnd", ...points: [number, number][]) => Promise<void>> {
  const devtools = await app.context.newCDPSession(app.page);
  return async (type, ...points) => {
    await devtools.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  };
}

/** The centre of a key in the key row. */
async function centre(app: App, name: string): Promise<[number, number]> {
  const { x, y, width, height } = (await app.page
    .locator(`[data-testid="key-row"] [aria-label="${name}"]`)
    .boundingBox())!;
  return [x + width / 2, y + height / 2];
}

/** An init script that records the timers of held keys, recognized by their delays. */
function watchHeldKeys(): void {
  const held = new Set<unknown>();
  const { setTimeout, clearTimeout } = window;
  const set = (run: () => void, delay?: number): unknown => {
    const id: unknown = setTimeout.call(window, () => (held.delete(id), run()), delay);
    if (delay === 400 || delay === 70) held.add(id);
    return id;
  };
  const clear = (id?: number): void => {
    held.delete(id);
    clearTimeout.call(window, id);
  };
  Object.assign(window, { setTimeout: set, clearTimeout: clear, held: () => held.size });
}

const held = ({ page }: App) => page.evaluate(() => (window as unknown as { held(): number }).held());

test("R54: a key that is removed while it is held stops repeating", async () => {
  const app = await open({ screen: PHONE, initScript: watchHeldKeys });
  await app.visit(await server.new("sh", "-c", "stty raw -echo; echo ready; head -c 3 >/dev/null; exit 3"));
  await app.prints("ready");
  const touch = await touchDispatcher(app);
  await touch("touchStart", await centre(app, "Down"));
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited with code 3")');
  await app.byTestId("key-row").waitFor({ state: "detached" });
  expect(await held(app)).toBe(0);
  await touch("touchEnd");
});

test("R54: of two keys under two fingers, neither is held after both are lifted", async () => {
  const app = await open({ screen: PHONE, initScript: watchHeldKeys });
  await app.visit(await server.new("sh", "-c", "stty raw -echo; echo ready; exec cat >/dev/null"));
  await app.prints("ready");
  const touch = await touchDispatcher(app);
  await touch("touchStart", await centre(app, "Down"), await centre(app, "Left"));
  await until("a key is held", async () => (await held(app)) > 0);
  await touch("touchEnd");
  await until("no key is held", async () => (await held(app)) === 0);
});

test("R23, R54: a terminal taller than its container shows the cursor, and the rest can be panned to", async () => {
  const id = await server.new("sh", "-c", "seq 300; exec cat");
  const laptop = await open({ screen: { viewport: { width: 1000, height: 1200 } } });
  await laptop.visit(id);
  const { rows } = await laptop.prints(/^300$/m);
  // With reduced motion, a scroll does not glide on and leave the cursor.
  const app = await open({ screen: { ...PHONE, viewport: { width: 844, height: 390 }, reducedMotion: "reduce" } });
  await app.visit(id);
  await app.prints(/^300$/m);
  await until("the laptop's size", async () => (await app.terminalState()).rows === rows);
  /** Positions of the first row and the cursor, relative to the top of the container, and heights, all in pixels. */
  const measure = () =>
    app.page.evaluate(() => {
      const container = document.querySelector('[data-testid="terminal"]') as HTMLElement & {
        terminal: import("@xterm/xterm").Terminal;
      };
      const { buffer, rows } = container.terminal;
      const [outer, inner] = [
        container.getBoundingClientRect(),
        container.querySelector(".xterm-screen")!.getBoundingClientRect(),
      ];
      const first = inner.top - outer.top;
      const { cursorY, viewportY, baseY } = buffer.active;
      return {
        first,
        cursor: first + ((cursorY + 1) * inner.height) / rows,
        container: container.clientHeight,
        height: inner.height,
        scrolled: baseY - viewportY,
      };
    });
  const { height, container } = await measure();
  expect(height).toBeGreaterThan(container + 50);
  const cursorVisible = async () => {
    const { cursor, container } = await measure();
    return cursor > 0 && cursor <= container + 1;
  };
  await until("the cursor is visible", cursorVisible, async () => JSON.stringify(await measure()));
  const touch = await touchDispatcher(app);
  const drag = async (from: number, to: number) => {
    const step = Math.sign(to - from) * 20;
    await touch("touchStart", [400, from]);
    for (let y = from + step; step > 0 ? y <= to : y >= to; y += step) await touch("touchMove", [400, y]);
    await touch("touchEnd");
  };
  // First pan to the first row, then scroll into the scrollback.
  await until(
    "the first row is visible",
    async () => (await measure()).first >= -1 || void (await drag(100, 160)),
    async () => JSON.stringify(await measure()),
  );
  await until(
    "the terminal shows older lines",
    async () => (await measure()).scrolled > 0 || void (await drag(100, 260)),
    async () => JSON.stringify(await measure()),
  );
  // Typing scrolls back to the cursor.
  await app.type("x");
  await until("the cursor is visible again", cursorVisible, async () => JSON.stringify(await measure()));
});

test("R54: the cursor is visible before the first tap", async () => {
  const app = await open({ screen: PHONE });
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.page.waitForSelector(".xterm-cursor-outline", { state: "attached" });
  expect(await app.page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea"))).toBe(
    false,
  );
});
