/** The first minutes: a link, a board, a terminal. */
import type { WebSocketRoute } from "playwright-core";
import { describe, expect, test } from "vitest";
import { afterwards, DESKTOP, PHONE, stage } from "./parts/app.ts";
import { clockOf, holdClock } from "./parts/clock.ts";
import { until } from "./parts/until.ts";
import { World } from "./parts/world.ts";

const { world, open, blank } = stage();

describe.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("on %s", (_, screen) => {
  test("R53: the printed link logs in, once, and leaves the address bar", async () => {
    const own = afterwards(await World.start());
    const app = await blank({ screen, of: own });
    await app.page.goto(own.firstLink);
    await app.page.waitForSelector("text=No sessions yet");
    expect(app.page.url()).toBe(`${own.url}/#/`);
    // Nobody else comes in by it.
    const late = await blank({ screen, of: own, rough: true });
    await late.page.goto(own.firstLink);
    await late.page.waitForSelector("text=This code was used");
    await late.page.fill('[data-testid="login-code"]', await own.loginLink());
    await late.page.click('button:has-text("Log in")');
    await late.page.waitForSelector("text=No sessions yet");
    // The first browser stays logged in.
    await app.page.reload();
    await app.page.waitForSelector("text=No sessions yet");
  });

  test("R54: what is typed is seen, exactly once", async () => {
    const id = await world.shell();
    const app = await open({ screen });
    await app.visit(id);
    await app.prints("ready>");
    await app.type("echo $((6 * 7)) '\u00fc \u2713'\r");
    const { text } = await app.prints(/^42 ü ✓$/m);
    expect(text.match(/^42 ü ✓$/gm)).toHaveLength(1);
    await until("the session shows the same", async () => (await world.screen(id)).includes("42 ü ✓"));
  });

  test("R54: a new session is started from the board, renamed, ended after a question, and restarted", async () => {
    const app = await open({ screen });
    const { page } = app;
    await page.click("text=New session >> nth=0");
    await page.fill("dialog input >> nth=0", "printf 'begun %s\\n' $$; exec cat");
    await page.fill("dialog input >> nth=1", "first");
    await page.click('dialog button:has-text("Start session")');
    await app.state("open");
    const before = /begun (\d+)/.exec((await app.prints(/begun \d+/)).text)?.[1];
    expect(await app.part("session-name").textContent()).toBe("first");

    await app.choose("Rename");
    await page.fill("dialog input", "no name!");
    await page.waitForSelector('dialog button:has-text("Rename"):disabled');
    await page.fill("dialog input", "second");
    await page.click('dialog button:has-text("Rename")');
    await page.waitForSelector('[data-testid="session-name"]:has-text("second")');

    await app.choose("End");
    await page.click('dialog button:text-is("Cancel")');
    await page.waitForSelector("dialog", { state: "detached" });
    expect(JSON.parse(await world.bowline("ls", "--json")).sessions).toMatchObject([
      { name: "second", state: "running" },
    ]);
    await app.choose("End");
    await page.click('dialog button:text-is("End")');
    await page.waitForSelector('[data-testid="exit"]:has-text("Ended by SIGHUP")');
    // What it printed can still be read.
    await app.prints(`begun ${before}`);

    await page.click('button:has-text("Restart")');
    await app.state("open");
    const pids = async () => [...(await app.shown()).text.matchAll(/begun (\d+)/g)].map((match) => match[1]);
    const after = await until("it began again", async () => (await pids()).find((pid) => pid !== before));
    await app.type("back\r");
    await app.prints("back");
    expect(after).not.toBe(before);
  });

  test("R54: the board shows state, title, directory and who needs you, as it happens", async () => {
    const app = await open({ screen, before: holdClock });
    const { page } = app;
    const id = await world.shell("work");
    const row = page.locator(`[data-session="${id}"]`);
    await page.waitForSelector(`[data-testid="running"] [data-session="${id}"]`);
    expect(await row.getAttribute("data-state")).toBe("running");
    await world.bowline("send", id, "--enter", "printf '\\033]2;a fine title\\007'");
    await row.locator("text=a fine title").waitFor();
    await world.bowline("send", id, "--enter", "cd /usr; printf '\\033]7;file://localhost/usr\\007'");
    await row.locator("text=/usr").waitFor();

    // It calls: it is on top, and R47, the page says so, for some seconds; no time passes until it is clicked.
    await clockOf(app).stop();
    await world.bowline("send", id, "--enter", "printf '\\033]9;tests are green\\007'");
    await page.waitForSelector(`[data-testid="needing"] [data-session="${id}"]`);
    await row.locator("text=tests are green").waitFor();
    await page.waitForSelector('[data-testid="notice"]:has-text("tests are green")');
    expect(await page.title()).toBe("(1) Bowline");
    // Somebody looks: it needs nobody any more.
    await page.click('[data-testid="notice"] a');
    await clockOf(app).run();
    await app.state("open");
    await page.click('[aria-label="Back to the board"]');
    await page.waitForSelector(`[data-testid="running"] [data-session="${id}"]`);

    await world.bowline("send", id, "--enter", "exit 3");
    await row.locator("text=Exited with code 3").waitFor();
    await page.waitForSelector(`[data-session="${id}"][data-state="exited"]`);
    await world.bowline("kill", id);
    await row.waitFor({ state: "detached" });
  });
});

test("R48: a board that was refused for good comes back on a click, and after a login, in the same page", async () => {
  const app = await blank({ rough: true });
  const { page } = app;
  let refused: number | undefined = 4403;
  let live: WebSocketRoute | undefined;
  await page.routeWebSocket(/\/v1\/events/, (socket) => {
    live = socket;
    if (refused === undefined) socket.connectToServer();
    else void socket.close({ code: refused, reason: "not allowed" });
  });
  await page.goto(await world.loginLink(app.base));
  await app.part("board-state").locator("button").waitFor();
  await page.evaluate(() => Object.assign(window, { same: true }));
  refused = undefined;
  await app.part("board-state").locator("button").click();
  await app.part("board-state").waitFor({ state: "detached" });
  refused = 4426;
  await live!.close({ code: 4426, reason: "no common version" });
  await app.part("board-state").locator("button").waitFor();
  refused = undefined;
  await page.goto(await world.loginLink(app.base));
  await app.part("board-state").waitFor({ state: "detached" });
  expect(await page.evaluate(() => "same" in window)).toBe(true);
});
