/**
 * Tests sessions that are not terminals or that the app cannot read: they are shown as such, and do not
 * affect others.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE, stopAfterTest } from "./parts/app.ts";
import { attachSockets, watchSockets } from "./parts/sockets.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Creates an ended session of a kind that this version does not know, from the files of a terminal. Returns its id. */
async function createUnknownKind(name: string): Promise<string> {
  const id = await server.bowline("new", "--detach", "--name", name, "--", "true");
  const folder = join(server.env["BOWLINE_STATE_DIR"]!, "sessions", id);
  stopAfterTest({ stop: () => rmSync(folder, { recursive: true, force: true }) });
  await until("the session ended", async () => {
    const { sessions } = JSON.parse(await server.bowline("ls", "--json")) as {
      sessions: { id: string; state: string }[];
    };
    return sessions.some((session) => session.id === id && session.state === "exited");
  });
  const meta = JSON.parse(readFileSync(join(folder, "meta.json"), "utf8")) as Record<string, unknown>;
  for (const field of ["argv", "arg0", "env", "size", "log_size", "history"]) delete meta[field];
  writeFileSync(join(folder, "meta.json"), JSON.stringify({ ...meta, kind: "hologram" }));
  return id;
}

/** Changes the board message before it reaches the page. */
async function alterBoard(page: Page, alter: (sessions: Record<string, unknown>[]) => unknown[]): Promise<void> {
  await page.routeWebSocket(/\/v1\/events/, (socket) => {
    const upstream = socket.connectToServer();
    upstream.onMessage((data) => {
      const message = JSON.parse(String(data)) as { type: string; sessions: Record<string, unknown>[] };
      socket.send(
        JSON.stringify(message.type === "board" ? { ...message, sessions: alter(message.sessions) } : message),
      );
    });
  });
}

const waitForUnsupported = ({ page }: App) =>
  page.waitForSelector("text=This version of Bowline cannot show this kind of session");

test.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])(
  "R54: on %s, a session of an unknown kind is on the board, and its page says that it cannot be shown",
  async (_, screen) => {
    const id = await createUnknownKind("projector");
    const app = await open({ screen, initScript: watchSockets });
    const { page } = app;
    const row = page.locator(`[data-testid="ended"] [data-session="${id}"]`);
    await row.waitFor();
    const text = await row.innerText();
    for (const part of ["projector", "Unknown kind", "Exited normally"]) expect(text).toContain(part);
    // It cannot be restarted, since its command is not known.
    await row.locator('[aria-label="Actions for projector"]').click();
    expect(await page.locator('[role="menuitem"]').allInnerTexts()).toEqual(["Rename", "Forget"]);
    await page.keyboard.press("Escape");
    await row.locator("a").click();
    await waitForUnsupported(app);
    const facts = await page.locator("dl").innerText();
    for (const fact of ["Unknown kind", "Exited normally", server.folder, id]) expect(facts).toContain(fact);
    expect(await page.title()).toBe("projector · Bowline");
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.click("text=Back to the board");
    await row.waitFor();
    // By its id in a new page, and by its name.
    for (const address of [id, "projector"]) {
      await page.goto("about:blank");
      await page.goto(`${app.base}/#/s/${address}`);
      await waitForUnsupported(app);
      expect(await attachSockets(page)).toEqual([]);
    }
    await page.click('[aria-label="Back"]');
  },
);

test("R54: a session that cannot be read is reported, and the others are listed", async () => {
  const id = await server.shell("shell");
  const app = await open();
  const { page } = app;
  await alterBoard(page, (sessions) => {
    const [{ argv: _argv, size: _size, ...shell }] = sessions as [Record<string, unknown>];
    const newer = { ...shell, id: "newernewer00", name: null, kind: "hologram", title: "Fix the login test" };
    return [{ ...shell, id: "broken000000", state: 7 }, newer, ...sessions];
  });
  await page.reload();
  const row = page.locator('[data-testid="running"] [data-session="newernewer00"]');
  await row.waitFor();
  const text = await row.innerText();
  for (const part of ["Fix the login test", "Unknown kind"]) expect(text).toContain(part);
  await row.locator('[aria-label^="Actions for"]').click();
  expect(await page.locator('[role="menuitem"]').allInnerTexts()).toEqual(["Rename", "End"]);
  await page.keyboard.press("Escape");
  expect(await page.locator('[data-testid="notice"]').allInnerTexts()).toEqual([
    expect.stringContaining("cannot read session broken000000"),
  ]);
  expect(await app.byTestId("board-state").count()).toBe(0);
  await page.click('[data-session="newernewer00"] a');
  await waitForUnsupported(app);
  await page.click('[aria-label="Back"]');
  await page.click(`[data-session="${id}"] a`);
  await app.prints("ready>");
});

test("R54: a session is removed from the board when its update cannot be read, since the old description is out of date", async () => {
  const id = await server.shell("shell");
  const app = await open();
  const { page } = app;
  await page.routeWebSocket(/\/v1\/events/, (socket) => {
    const upstream = socket.connectToServer();
    upstream.onMessage((data) => {
      const message = JSON.parse(String(data)) as { type: string; session: Record<string, unknown> };
      const broken =
        message.type === "session" && message.session["id"] === id && message.session["name"] === "renamed";
      socket.send(JSON.stringify(broken ? { ...message, session: { ...message.session, state: 7 } } : message));
    });
  });
  await page.reload();
  const row = page.locator(`[data-session="${id}"]`);
  await row.waitFor();
  await server.bowline("rename", id, "renamed");
  await row.waitFor({ state: "detached" });
  expect(await page.locator('[data-testid="notice"]').allInnerTexts()).toEqual([
    expect.stringContaining(`cannot read session ${id}`),
  ]);
  expect(await app.byTestId("board-state").count()).toBe(0);
});

test("R54: a session that is opened by its URL is not attached before its kind is known", async () => {
  const id = await server.shell("shell");
  const app = await open({ initScript: watchSockets, networkErrors: true });
  const { page } = app;
  let answer = () => {};
  const held = new Promise<void>((release) => (answer = release));
  await alterBoard(page, () => []);
  await page.route(`**/v1/sessions/${id}`, async (route) => {
    await held;
    await route.continue();
  });
  await page.goto("about:blank");
  await page.goto(`${app.base}/#/s/${id}`);
  await page.waitForSelector('[data-testid="connection"]:has-text("Connecting")');
  expect(await attachSockets(page)).toEqual([]);
  answer();
  await app.waitForState("open");
  await app.prints("ready>");
});

test("R54: when the gateway cannot describe a session, a click retries the request", async () => {
  const id = await server.shell("shell");
  const app = await open({ networkErrors: true });
  const { page } = app;
  await alterBoard(page, () => []);
  const problem = {
    status: 503,
    headers: { "Bowline-Code": "unreachable" },
    json: { code: "unreachable", detail: "the session is starting" },
  };
  await page.route(`**/v1/sessions/${id}`, (route) => route.fulfill(problem));
  await page.goto("about:blank");
  await page.goto(`${app.base}/#/s/${id}`);
  await page.waitForSelector("text=the session is starting");
  await page.unroute(`**/v1/sessions/${id}`);
  await page.click("text=Retry now");
  await app.prints("ready>");
});

test("R54: if the terminal's code fails to load, the board still works, and a session reports the failure", async () => {
  const id = await server.shell("shell");
  const app = await open({ networkErrors: true });
  const { page } = app;
  await page.evaluate(async () => {
    for (const worker of await navigator.serviceWorker.getRegistrations()) await worker.unregister();
  });
  await page.route("**/assets/Terminal-*.js", (route) => route.abort());
  await page.reload();
  await page.waitForSelector(`[data-session="${id}"]`);
  await app.waitForPaint();
  expect(app.problems).toEqual([]);
  await page.click(`[data-session="${id}"] a`);
  await page.waitForSelector("text=Part of the app failed to load");
});
