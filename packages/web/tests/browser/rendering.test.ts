/** Who draws: the DOM at first and without a GPU, a GPU from then on, and nobody sees the change. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { stage } from "./parts/app.ts";
import { pretendGpu } from "./parts/gpu.ts";

const { world, open } = stage();

/** What was noted in the page. */
interface Seen {
  readonly sizes: string[];
  readonly moves: number[];
  readonly frames: { by: "dom" | "gpu"; width: number; at: number }[];
}

/** Runs in the page: notes what it tells the session about its size, what moves, and who draws. */
function note(): void {
  const sizes: string[] = [];
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (typeof data === "string" && /"(resize|claim_size)"/.test(data)) sizes.push(data);
    send.call(this, data);
  };
  const moves: number[] = [];
  new PerformanceObserver((list) => moves.push(...list.getEntries().map((entry) => entry.startTime))).observe({
    type: "layout-shift",
  });
  // The width of the terminal in each frame, and who drew it.
  const frames: Seen["frames"] = [];
  const look = () => {
    const screen = document.querySelector(".xterm-screen");
    const { terminal } = (document.querySelector('[data-testid="terminal"]') ?? {}) as {
      terminal?: import("@xterm/xterm").Terminal;
    };
    const shows = terminal?.buffer.active.getLine(0)?.translateToString(true);
    if (screen && shows)
      frames.push({
        by: screen.querySelector("canvas") ? "gpu" : "dom",
        width: screen.getBoundingClientRect().width,
        at: performance.now(),
      });
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  Object.assign(window, { seen: { sizes, moves, frames } });
}

const seenBy = (page: Page) => page.evaluate(() => (window as unknown as { seen: Seen }).seen);

test("a GPU takes over after the first output, and nothing moves", async () => {
  const id = await world.shell();
  const app = await open({ before: pretendGpu });
  await app.page.evaluate(note);
  await app.visit(id);
  await app.prints("ready>");
  await app.page.waitForSelector(".xterm-screen canvas");
  await app.drawn();
  const { sizes, moves, frames } = await seenBy(app.page);
  const changed = frames.findIndex(({ by }) => by === "gpu");
  expect(frames[0]!.by).toBe("dom");
  expect(frames.slice(changed).every(({ by }) => by === "gpu")).toBe(true);
  // Both round to whole pixels, each in its own way.
  expect(Math.abs(frames.at(-1)!.width - frames[0]!.width)).toBeLessThanOrEqual(1);
  expect(sizes).toEqual([]);
  expect(moves).toEqual([]);
  await app.type("echo drawn $((6 * 7))\r");
  await app.prints("drawn 42");
});

test("a GPU whose context is lost leaves the drawing to the DOM", async () => {
  const app = await open({ before: pretendGpu });
  await app.visit(await world.shell());
  await app.page.waitForSelector(".xterm-screen canvas");
  await app.page.evaluate(() => {
    const contexts = [...document.querySelectorAll<HTMLCanvasElement>(".xterm-screen canvas")].map((canvas) =>
      canvas.getContext("webgl2"),
    );
    contexts.forEach((gl) => gl?.getExtension("WEBGL_lose_context")?.loseContext());
  });
  await app.page.waitForSelector(".xterm-rows");
  await app.type("echo still $((6 * 7))\r");
  await app.page.waitForSelector('.xterm-rows:has-text("still 42")');
});

test("what the processor plays is no GPU, and is not used", async () => {
  const app = await open();
  await app.visit(await world.shell());
  await app.prints("ready>");
  await app.page.evaluate(() => new Promise((idle) => requestIdleCallback(() => requestIdleCallback(idle))));
  await app.page.waitForSelector('.xterm-rows:has-text("ready>")');
  expect(await app.page.locator(".xterm-screen canvas").count()).toBe(0);
  expect(
    await app.page.evaluate(
      () => performance.getEntriesByType("resource").filter(({ name }) => name.includes("webgl")).length,
    ),
  ).toBe(0);
});
