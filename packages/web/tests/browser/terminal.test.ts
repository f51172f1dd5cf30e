/** Tests what surrounds a terminal: search, its menus, scrolling, and older output. */
import { test } from "vitest";
import { type App, browserSuite } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Waits until the search shows this result. */
async function finds(app: App, result: RegExp): Promise<void> {
  const shown = () => app.byTestId("search-result").textContent();
  await until(`the search says ${String(result)}`, async () => result.test((await shown()) ?? ""), shown);
}

test("R54: a search says how many matches there are, and can match case and regular expressions", async () => {
  const app = await open();
  const { page } = app;
  const id = await server.new("sh", "-c", "seq -f 'Number %.0f' 1500; echo END number; exec cat");
  // A snapshot has the last 1,000 lines.
  await until("the session has printed", async () => (await server.screen(id)).includes("END"));
  await app.visit(id);
  await app.prints(/^END/m);
  await page.keyboard.press("Control+Shift+F");
  const field = page.locator('[aria-label="Search for"]');
  await field.fill("Number 123");
  await finds(app, /^\d+ of 10$/);
  await field.fill("NUMBER 123");
  await finds(app, /^\d+ of 10$/);
  await page.click('[aria-label="Match case"]');
  await finds(app, /^No results$/);
  await field.fill("number");
  await finds(app, /^1 of 1$/);
  await page.click('[aria-label="Match case"]');
  await finds(app, /^1,000\+ results$/);
  await page.click('[aria-label="Regular expression"]');
  await field.fill("Number (1497|1498)$");
  await finds(app, /^\d of 2$/);
  await field.fill("Number (1497");
  await finds(app, /^Not a regular expression$/);
  await field.fill("x*");
  await finds(app, /^No results$/);
});
