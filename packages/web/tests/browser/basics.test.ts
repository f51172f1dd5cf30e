/** Tests the basics: logging in, the board, and a terminal. */
import type { WebSocketRoute } from "playwright-core";
import { describe, expect, test } from "vitest";
import { browserSuite, DESKTOP, PHONE, stopAfterTest } from "./parts/app.ts";
import { clockOf, controlClock } from "./parts/clock.ts";
import { until } from "./parts/until.ts";
import { TestServer } from "./parts/server.ts";

const { server, open, blank } = browserSuite();

describe.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("on %s", (_, screen) => {
  test("R53: the printed link logs in once, and is removed from the address bar", async () => {
    const own = stopAfterTest(await TestServer.start());
    const app = await blank({ screen, server: own });
    await app.page.goto(own.firstLink);
    await app.page.waitForSelector("text=No sessions yet");
    expect(app.page.url()).toBe(`${own.url}/#/`);
    // Another browser cannot use it.
    const late = await blank({ screen, server: own, networkErrors: true });
    await late.page.goto(own.firstLink);
    await late.page.waitForSelector("text=This login code is invalid");
    await late.page.fill('[data-testid="login-code"]', await own.loginLink());
    await late.page.click('button:has-text("Log in")');
    await late.page.waitForSelector("text=No sessions yet");
    // The first browser stays logged in.
    await app.page.reload();
    await app.page.waitForSelector("text=No sessions yet");
  });

  test("R54: typed text appears exactly once", async () => {
    const id = await server.shell();
    const app = await open({ screen });
    await app.visit(id);
    await app.prints("ready>");
    await app.type("echo $((6 * 7)) '\u00fc \u2713'\r");
    const { text } = await app.prints(/^42 ü ✓$/m);
    expect(text.match(/^42 ü ✓$/gm)).toHaveLength(1);
    await until("the session shows the same", async () => (await server.screen(id)).includes("42 ü ✓"));
  });

  test("R54: a session can be started from the board, renamed, ended after a confirmation, and restarted", async () => {
    const app = await open({ screen });
    const { page } = app;
    await page.click("text=New session >> nth=0");
    await page.getByLabel("Command").fill("printf 'begun %s\\n' $$; exec cat");
    await page.getByLabel("Name").fill("first");
    await page.click('dialog button:has-text("Start session")');
    await app.waitForState("open");
    const before = /begun (\d+)/.exec((await app.prints(/begun \d+/)).text)?.[1];
    expect(await app.byTestId("session-name").textContent()).toBe("first");

    await app.choose("Rename");
    await page.fill("dialog input", "no name!");
    await page.waitForSelector('dialog button:has-text("Rename"):disabled');
    await page.fill("dialog input", "second");
    await page.click('dialog button:has-text("Rename")');
    await page.waitForSelector('[data-testid="session-name"]:has-text("second")');

    await app.choose("End");
    await page.click('dialog button:text-is("Cancel")');
    await page.waitForSelector("dialog", { state: "detached" });
    expect(JSON.parse(await server.bowline("ls", "--json")).sessions).toMatchObject([
      { name: "second", state: "running" },
    ]);
    await app.choose("End");
    await page.click('dialog button:text-is("End")');
    await page.waitForSelector('[data-testid="exit"]:has-text("Ended by SIGHUP")');
    // The output can still be read.
    await app.prints(`begun ${before}`);

    await page.click('button:has-text("Restart")');
    await app.waitForState("open");
    const pids = async () => [...(await app.terminalState()).text.matchAll(/begun (\d+)/g)].map((match) => match[1]);
    const after = await until("the program started again", async () => (await pids()).find((pid) => pid !== before));
    await app.type("back\r");
    await app.prints("back");
    expect(after).not.toBe(before);
  });

  test("R54: the board shows state, title, directory and calls as they change", async () => {
    const app = await open({ screen, initScript: controlClock });
    const { page } = app;
    const id = await server.shell("work");
    const row = page.locator(`[data-session="${id}"]`);
    await page.waitForSelector(`[data-testid="running"] [data-session="${id}"]`);
    expect(await row.getAttribute("data-state")).toBe("running");
    await server.bowline("send", id, "--enter", "printf '\\033]2;a fine title\\007'");
    await row.locator("text=a fine title").waitFor();
    await server.bowline("send", id, "--enter", "cd /usr; printf '\\033]7;file://localhost/usr\\007'");
    await row.locator("text=/usr").waitFor();

    // A call moves the session to the top and, R47, shows a notice for a few seconds. The clock is stopped
    // until the notice is clicked.
    await clockOf(app).stop();
    await server.bowline("send", id, "--enter", "printf '\\033]9;tests are green\\007'");
    await page.waitForSelector(`[data-testid="attention"] [data-session="${id}"]`);
    await row.locator("text=tests are green").waitFor();
    await page.waitForSelector('[data-testid="notice"]:has-text("tests are green")');
    expect(await page.title()).toBe("(1) Bowline");
    // Once viewed, the session no longer needs attention.
    await page.click('[data-testid="notice"] a');
    await clockOf(app).run();
    await app.waitForState("open");
    await page.click('[aria-label="Back to the board"]');
    await page.waitForSelector(`[data-testid="running"] [data-session="${id}"]`);

    await server.bowline("send", id, "--enter", "exit 3");
    await row.locator("text=Exited with code 3").waitFor();
    await page.waitForSelector(`[data-session="${id}"][data-state="exited"]`);
    await server.bowline("kill", id);
    await row.waitFor({ state: "detached" });
  });
});

test("R48: a board that was refused permanently loads after a click, and after a login, without reloading the page", async () => {
  const app = await blank({ networkErrors: true });
  const { page } = app;
  let refused: number | undefined = 4403;
  let live: WebSocketRoute | undefined;
  await page.routeWebSocket(/\/v1\/events/, (socket) => {
    live = socket;
    if (refused === undefined) socket.connectToServer();
    else void socket.close({ code: refused, reason: "not allowed" });
  });
  await page.goto(await server.loginLink(app.base));
  await app.byTestId("board-state").locator("button").waitFor();
  await page.evaluate(() => Object.assign(window, { same: true }));
  refused = undefined;
  await app.byTestId("board-state").locator("button").click();
  await app.byTestId("board-state").waitFor({ state: "detached" });
  refused = 4426;
  await live!.close({ code: 4426, reason: "no common version" });
  await app.byTestId("board-state").locator("button").waitFor();
  refused = undefined;
  await page.goto(await server.loginLink(app.base));
  await app.byTestId("board-state").waitFor({ state: "detached" });
  expect(await page.evaluate(() => "same" in window)).toBe(true);
});
