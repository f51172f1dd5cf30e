/** Prints numbers for docs/BENCHMARKS.md; asserts none of them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE } from "./parts/app.ts";
import { pretendGpu } from "./parts/gpu.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();
const LOADS = 9;

/** Marks the frame in which the terminal first shows output. */
function markOutput(): void {
  const check = () => {
    const { terminal } = (document.querySelector('[data-testid="terminal"]') ?? {}) as {
      terminal?: import("@xterm/xterm").Terminal;
    };
    if (terminal?.buffer.active.getLine(0)?.translateToString(true)) performance.mark("output");
    else requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
}

/** Loads the page `LOADS` times. Returns the milliseconds from the start of each load to the first output, sorted. */
async function measureLoads(app: App, rendererSelector: string, load: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < LOADS; turn++) {
    await load();
    times.push(
      await until("the first output", () =>
        app.page.evaluate(() => performance.getEntriesByName("output")[0]?.startTime),
      ),
    );
    // Wait for the renderer, so that it does not slow down the next load.
    await app.page.waitForSelector(rendererSelector);
  }
  return times.sort((a, b) => a - b);
}

// The test browser has no GPU. Software rendering takes longer to start than any GPU.
test.each([
  ["a desktop window, DOM renderer", DESKTOP, undefined],
  ["a desktop window, WebGL after the first output", DESKTOP, pretendGpu],
  ["a phone window", PHONE, undefined],
])("time from page load to first output, in %s", { timeout: 240_000 }, async (name, screen, initScript) => {
  const app = await open({ screen, ...(initScript && { initScript }) });
  const rendererSelector = initScript ? ".xterm-screen canvas" : ".xterm-rows";
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.page.addInitScript(markOutput);
  const warm = await measureLoads(app, rendererSelector, () => app.page.reload());
  // As on a first visit, with nothing cached.
  const devtools = await app.context.newCDPSession(app.page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  await devtools.send("Network.setBypassServiceWorker", { bypass: true });
  const cold = await measureLoads(app, rendererSelector, () => app.page.reload());
  const show = (times: number[]) =>
    `median ${Math.round(times[LOADS >> 1]!)} ms, slowest ${Math.round(times.at(-1)!)} ms`;
  console.log(`first output in ${name}: reload: ${show(warm)}; empty cache: ${show(cold)}`);
  expect(warm).toHaveLength(LOADS);
});

test("the size of the app", () => {
  const dist = join(import.meta.dirname, "../../dist");
  const files = ["index.html", "sw.js", ...readdirSync(join(dist, "assets")).map((name) => `assets/${name}`)];
  const sizes = files.map((file) => [file, gzipSync(readFileSync(join(dist, file))).length] as const);
  for (const [file, size] of sizes) console.log(`${file}: ${(size / 1024).toFixed(1)} KiB gzip`);
  console.log(`total: ${(sizes.reduce((sum, [, size]) => sum + size, 0) / 1024).toFixed(1)} KiB gzip`);
  expect(sizes.length).toBeGreaterThan(2);
});
