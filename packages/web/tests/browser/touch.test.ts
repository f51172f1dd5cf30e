/** Fingers on a phone: keys that are held, and terminals that are larger than their place. */
import { expect, test } from "vitest";
import { type App, PHONE, stage } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();

/** Fingers at these places. */
async function fingers(
  app: App,
): Promise<(type: "touchStart" | "touchMove" | "touchEnd", ...points: [number, number][]) => Promise<void>> {
  const devtools = await app.context.newCDPSession(app.page);
  return async (type, ...points) => {
    await devtools.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  };
}

/** Where a key of the row is. */
async function middle(app: App, name: string): Promise<[number, number]> {
  const { x, y, width, height } = (await app.page
    .locator(`[data-testid="key-row"] [aria-label="${name}"]`)
    .boundingBox())!;
  return [x + width / 2, y + height / 2];
}

/** Runs in the page before anything else: notes timers of held keys, which no other timer looks like. */
function watchHeld(): void {
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

test("R54: a key that goes away under the finger is not held any more", async () => {
  const app = await open({ screen: PHONE, before: watchHeld });
  await app.visit(await world.new("sh", "-c", "stty raw -echo; echo ready; head -c 3 >/dev/null; exit 3"));
  await app.prints("ready");
  const touch = await fingers(app);
  await touch("touchStart", await middle(app, "Down"));
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited with code 3")');
  await app.part("key-row").waitFor({ state: "detached" });
  expect(await held(app)).toBe(0);
  await touch("touchEnd");
});

test("R54: of two keys under two fingers, none is held when both are up", async () => {
  const app = await open({ screen: PHONE, before: watchHeld });
  await app.visit(await world.new("sh", "-c", "stty raw -echo; echo ready; exec cat >/dev/null"));
  await app.prints("ready");
  const touch = await fingers(app);
  await touch("touchStart", await middle(app, "Down"), await middle(app, "Left"));
  await until("a key is held", async () => (await held(app)) > 0);
  await touch("touchEnd");
  await until("none is held", async () => (await held(app)) === 0);
});

test("R23, R54: a terminal that is taller than its place shows its cursor, and a finger reaches the rest", async () => {
  const id = await world.new("sh", "-c", "seq 300; exec cat");
  const laptop = await open({ screen: { viewport: { width: 1000, height: 1200 } } });
  await laptop.visit(id);
  const { rows } = await laptop.prints(/^300$/m);
  // A scroll that went on by itself would leave the cursor again.
  const app = await open({ screen: { ...PHONE, viewport: { width: 844, height: 390 }, reducedMotion: "reduce" } });
  await app.visit(id);
  await app.prints(/^300$/m);
  await until("the laptop's size", async () => (await app.shown()).rows === rows);
  /** Where the terminal's first row and the row of its cursor are, from the top of its place, and how tall that is. */
  const look = () =>
    app.page.evaluate(() => {
      const place = document.querySelector('[data-testid="terminal"]') as HTMLElement & {
        terminal: import("@xterm/xterm").Terminal;
      };
      const { buffer, rows } = place.terminal;
      const [outer, inner] = [
        place.getBoundingClientRect(),
        place.querySelector(".xterm-screen")!.getBoundingClientRect(),
      ];
      const first = inner.top - outer.top;
      const { cursorY, viewportY, baseY } = buffer.active;
      return {
        first,
        cursor: first + ((cursorY + 1) * inner.height) / rows,
        place: place.clientHeight,
        tall: inner.height,
        scrolled: baseY - viewportY,
      };
    });
  const { tall, place } = await look();
  expect(tall).toBeGreaterThan(place + 50);
  const seesCursor = async () => {
    const { cursor, place } = await look();
    return cursor > 0 && cursor <= place + 1;
  };
  await until("the cursor is seen", seesCursor, async () => JSON.stringify(await look()));
  const touch = await fingers(app);
  const drag = async (from: number, to: number) => {
    const step = Math.sign(to - from) * 20;
    await touch("touchStart", [400, from]);
    for (let y = from + step; step > 0 ? y <= to : y >= to; y += step) await touch("touchMove", [400, y]);
    await touch("touchEnd");
  };
  // Down to its first row, and only then into what has scrolled away.
  await until(
    "its first row",
    async () => (await look()).first >= -1 || void (await drag(100, 160)),
    async () => JSON.stringify(await look()),
  );
  await until(
    "older lines",
    async () => (await look()).scrolled > 0 || void (await drag(100, 260)),
    async () => JSON.stringify(await look()),
  );
  // A key leads back to the cursor.
  await app.type("x");
  await until("the cursor is seen again", seesCursor, async () => JSON.stringify(await look()));
});

test("R54: the cursor is seen before somebody taps the terminal", async () => {
  const app = await open({ screen: PHONE });
  await app.visit(await world.shell());
  await app.prints("ready>");
  await app.page.waitForSelector(".xterm-cursor-outline", { state: "attached" });
  expect(await app.page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea"))).toBe(
    false,
  );
});
