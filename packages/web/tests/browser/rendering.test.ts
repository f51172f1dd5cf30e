/** Tests the renderers: the DOM first, then a GPU if there is one, without a visible change. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserSuite } from "./parts/app.ts";
import { pretendGpu } from "./parts/gpu.ts";

const { server, open } = browserSuite();

/** What `record` recorded in the page. */
interface Recording {
  readonly sizes: string[];
  readonly shifts: number[];
  readonly frames: { renderer: "dom" | "gpu"; width: number; at: number }[];
}

/** Records in the page: size messages to the session, layout shifts, and which renderer drew each frame. */
function record(): void {
  const sizes: string[] = [];
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (typeof data === "string" && /"(resize|claim_size)"/.test(data)) sizes.push(data);
    send.call(this, data);
  };
  const shifts: number[] = [];
  new PerformanceObserver((list) => shifts.push(...list.getEntries().map((entry) => entry.startTime))).observe({
    type: "layout-shift",
  });
  // The width of the terminal and its renderer in each frame.
  const frames: Recording["frames"] = [];
  const recordFrame = () => {
    const screen = document.querySelector(".xterm-screen");
    const { terminal } = (document.querySelector('[data-testid="terminal"]') ?? {}) as {
      terminal?: import("@xterm/xterm").Terminal;
    };
    const shows = terminal?.buffer.active.getLine(0)?.translateToString(true);
    if (screen && shows)
      frames.push({
        renderer: screen.querySelector("canvas") ? "gpu" : "dom",
        width: screen.getBoundingClientRect().width,
        at: performance.now(),
      });
    requestAnimationFrame(recordFrame);
  };
  requestAnimationFrame(recordFrame);
  Object.assign(window, { recording: { sizes, shifts, frames } });
}

const recordingOf = (page: Page) => page.evaluate(() => (window as unknown as { recording: Recording }).recording);

test("a GPU takes over after the first output, and nothing moves", async () => {
  const id = await server.shell();
  const app = await open({ initScript: pretendGpu });
  await app.page.evaluate(record);
  await app.visit(id);
  await app.prints("ready>");
  await app.page.waitForSelector(".xterm-screen canvas");
  await app.waitForPaint();
  const { sizes, shifts, frames } = await recordingOf(app.page);
  const changed = frames.findIndex(({ renderer }) => renderer === "gpu");
  expect(frames[0]!.renderer).toBe("dom");
  expect(frames.slice(changed).every(({ renderer }) => renderer === "gpu")).toBe(true);
  // The renderers round to whole pixels differently.
  expect(Math.abs(frames.at(-1)!.width - frames[0]!.width)).toBeLessThanOrEqual(1);
  expect(sizes).toEqual([]);
  expect(shifts).toEqual([]);
  await app.type("echo drawn $((6 * 7))\r");
  await app.prints("drawn 42");
});

test("when the GPU context is lost, the DOM renderer takes over", async () => {
  const app = await open({ initScript: pretendGpu });
  await app.visit(await server.shell());
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

test("a software renderer is not used", async () => {
  const app = await open();
  await app.visit(await server.shell());
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
