/** What is filled in: new sessions and settings take whatever somebody types. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, stage } from "./parts/app.ts";

const { world, open } = stage();

async function start({ page }: App, command: string, folder = ""): Promise<void> {
  await page.click("text=New session >> nth=0");
  await page.fill("dialog input >> nth=0", command);
  await page.fill("dialog input >> nth=2", folder);
  await page.click('dialog button:has-text("Start session")');
}

test("R54: a session starts from a long command in any script, in a directory of any name", async () => {
  const app = await open();
  const folder = join(world.folder, "日本");
  mkdirSync(folder);
  await start(app, `echo "✓ $(basename "$PWD")"; : ${"a long line ".repeat(40)}; exec cat`, folder);
  await app.state("open");
  await app.prints("✓ 日本");
});

/** Runs in the page before anything else: the first answer to a new session is lost on its way. */
function loseAnswer(): void {
  const real = window.fetch;
  let lost = false;
  window.fetch = async (...args) => {
    const answer = await real(...args);
    if (lost || args[1]?.method !== "POST" || !String(args[0]).endsWith("/v1/sessions")) return answer;
    lost = true;
    throw new TypeError("the line is cut");
  };
}

test("R54: a second try after a lost answer makes no second session, and another command another one", async () => {
  const app = await open({ before: loseAnswer });
  const { page } = app;
  await start(app, "echo first; exec cat");
  await page.waitForSelector('dialog [role="alert"]:has-text("the line is cut")');
  await page.click('dialog button:has-text("Start session")');
  await app.state("open");
  await app.prints("first");
  const sessions = async () => (JSON.parse(await world.bowline("ls", "--json")) as { sessions: unknown[] }).sessions.length;
  expect(await sessions()).toBe(1);
  await page.reload();
  await app.state("open");
  await page.click('[aria-label="Back to the board"]');
  await start(app, "echo another; exec cat");
  await page.waitForSelector('dialog [role="alert"]');
  await page.fill("dialog input >> nth=0", "echo other; exec cat");
  await page.click('dialog button:has-text("Start session")');
  await app.prints("other");
  expect(await sessions()).toBe(3);
});

test.each(["", "-5", "1.5", "1e30"])("R54: scrollback of %j lines breaks no terminal", async (lines) => {
  const app = await open();
  const { page } = app;
  await page.goto(`${app.base}/#/settings`);
  const field = page.locator('label:has-text("Scrollback") input');
  await field.fill(lines);
  await field.blur();
  expect(Number(await field.inputValue())).toBe({ "": 5000, "-5": 0, "1.5": 2, "1e30": 100_000 }[lines]);
  await app.visit(await world.shell());
  await app.prints("ready>");
});
