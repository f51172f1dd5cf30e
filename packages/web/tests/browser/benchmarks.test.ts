/** Numbers for docs/BENCHMARKS.md: printed, never asserted. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type App, DESKTOP, PHONE, stage } from "./parts/app.ts";
import { pretendGpu } from "./parts/gpu.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();
const LOADS = 9;

/** Marks the frame in which the terminal first has output. */
function markOutput(): void {
  const look = () => {
    const { terminal } = (document.querySelector('[data-testid="terminal"]') ?? {}) as {
      terminal?: import("@xterm/xterm").Terminal;
    };
    if (terminal?.buffer.active.getLine(0)?.translateToString(true)) performance.mark("output");
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Loads the page, some times; from the start of the load to the first output, in milliseconds. */
async function loads(app: App, drawing: string, load: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < LOADS; turn++) {
    await load();
    times.push(
      await until("the first output", () =>
        app.page.evaluate(() => performance.getEntriesByName("output")[0]?.startTime),
      ),
    );
    // What begins after that is not part of the next load.
    await app.page.waitForSelector(drawing);
  }
  return times.sort((a, b) => a - b);
}

// The browser of these tests has no GPU. A processor that passes for one takes longer to begin than any GPU.
test.each([
  ["a laptop's window, drawn by the DOM", DESKTOP, undefined],
  ["a laptop's window, drawn by WebGL after that", DESKTOP, pretendGpu],
  ["a phone's window", PHONE, undefined],
])("from the load of the page to the first output, in %s", { timeout: 240_000 }, async (name, screen, before) => {
  const app = await open({ screen, ...(before && { before }) });
  const drawing = before ? ".xterm-screen canvas" : ".xterm-rows";
  await app.visit(await world.shell());
  await app.prints("ready>");
  await app.page.addInitScript(markOutput);
  const warm = await loads(app, drawing, () => app.page.reload());
  // As on the first visit: nothing of the app is in the browser.
  const devtools = await app.context.newCDPSession(app.page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  await devtools.send("Network.setBypassServiceWorker", { bypass: true });
  const cold = await loads(app, drawing, () => app.page.reload());
  const show = (times: number[]) =>
    `median ${Math.round(times[LOADS >> 1]!)} ms, slowest ${Math.round(times.at(-1)!)} ms`;
  console.log(`first output in ${name}: loaded again: ${show(warm)}; nothing in the cache: ${show(cold)}`);
  expect(warm).toHaveLength(LOADS);
});

test("how large the app is", () => {
  const dist = join(import.meta.dirname, "../../dist");
  const files = ["index.html", "sw.js", ...readdirSync(join(dist, "assets")).map((name) => `assets/${name}`)];
  const sizes = files.map((file) => [file, gzipSync(readFileSync(join(dist, file))).length] as const);
  for (const [file, size] of sizes) console.log(`${file}: ${(size / 1024).toFixed(1)} KiB gzip`);
  console.log(`all of it: ${(sizes.reduce((sum, [, size]) => sum + size, 0) / 1024).toFixed(1)} KiB gzip`);
  expect(sizes.length).toBeGreaterThan(2);
});
