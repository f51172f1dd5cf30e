/** Tests that only the session replies to queries, and how pages handle clipboard, links and notifications. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { browserSuite, PHONE } from "./parts/app.ts";
import { clockOf, controlClock } from "./parts/clock.ts";
import { OTHER_NAME } from "./parts/setup.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Terminal queries, and the pattern of the one reply. */
const QUERIES: readonly (readonly [query: string, reply: RegExp])[] = [
  ["\\033[c", /\x1b\[\?[\d;]+c/g],
  ["\\033[>c", /\x1b\[>[\d;]+c/g],
  ["\\033[5n", /\x1b\[0n/g],
  ["\\033[6n", /\x1b\[\d+;\d+R/g],
  ["\\033[?2004$p", /\x1b\[\?2004;\d\$y/g],
  ["\\033]10;?\\007", /\x1b\]10;rgb:[\da-f/]+(?:\x07|\x1b\\)/g],
  ["\\033]11;?\\007", /\x1b\]11;rgb:[\da-f/]+(?:\x07|\x1b\\)/g],
];

test("R24: with three pages attached, a program gets one reply to each query, even when the output is replayed", async () => {
  const input = join(server.folder, "input");
  const queries = QUERIES.map(([query]) => query).join("");
  const id = await server.new(
    "sh",
    "-c",
    `stty raw -echo; : >${input}; printf 'hello\\r\\n'; head -c 1 >/dev/null; printf '${queries}'; printf 'done\\r\\n'; exec cat >${input}`,
  );
  const apps = [await open(), await open(), await open()];
  for (const app of apps) await app.visit(id);
  await apps[0]!.prints("hello");
  await apps[0]!.type("!");
  for (const app of apps) await app.prints("done");
  // Replay the output to one page.
  await apps[2]!.page.reload();
  await apps[2]!.prints("done");
  // A reply from a page would arrive before what is typed into it now. Typing in turns makes the order certain.
  const all = () => readFileSync(input, "latin1");
  const rest = () => QUERIES.reduce((text, [, reply]) => text.replace(reply, ""), all());
  for (const [at, app] of apps.entries()) {
    await app.type("xyz"[at]!);
    await until(
      "the input arrived",
      () => rest().includes("xyz"[at]!),
      () => JSON.stringify(all()),
    );
  }
  for (const [query, reply] of QUERIES) expect([query, all().match(reply)?.length ?? 0]).toEqual([query, 1]);
  expect(rest()).toBe("xyz");
});

test("R29: a program can write to the clipboard, but not read it", async () => {
  const input = join(server.folder, "read");
  const app = await open();
  await app.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: app.base });
  await app.page.evaluate(() => navigator.clipboard.writeText("a secret of the user"));
  const encoded = Buffer.from("from the program: ✓").toString("base64");
  const script = `stty raw -echo; : >${input}; head -c 1 >/dev/null; printf '\\033]52;c;?\\007\\033]52;c;${encoded}\\007\\033]52;c;?\\007done\\r\\n'; exec cat >${input}`;
  await app.visit(await server.new("sh", "-c", script));
  await app.type("!");
  await app.prints("done");
  const clipboard = () => app.page.evaluate(() => navigator.clipboard.readText());
  await until("the clipboard has the text", async () => (await clipboard()) === "from the program: ✓", clipboard);
  await app.type("x");
  await until("the input arrived", () => readFileSync(input, "latin1").includes("x"));
  expect(readFileSync(input, "latin1")).toBe("x");
});

test("R27: a link that wraps is recognized completely, and opens on a click with Ctrl only", async () => {
  const app = await open();
  const url = `http://${OTHER_NAME}:${new URL(server.url).port}/healthz?${"long=query&".repeat(20)}end`;
  await app.visit(await server.new("sh", "-c", `printf 'see \\033[4m%s\\033[0m for more\\r\\n' '${url}'; exec cat`));
  await app.prints("for more");
  await app.waitForPaint();
  const screen = await app.page.locator(".xterm-screen").boundingBox();
  const { rows } = await app.terminalState();
  const cell = screen!.height / rows;
  // Click the second row of the link.
  const opened = app.context.waitForEvent("page");
  await app.page.mouse.move(screen!.x + 100, screen!.y + cell * 1.5, { steps: 4 });
  await app.page.waitForSelector(".xterm-cursor-pointer");
  await app.byTestId("link-hint").locator(`text=${url}`).waitFor();
  await app.page.mouse.click(screen!.x + 100, screen!.y + cell * 1.5);
  await app.waitForPaint();
  expect(app.context.pages()).toHaveLength(1);
  await app.page.keyboard.down("Control");
  await app.page.mouse.click(screen!.x + 100, screen!.y + cell * 1.5);
  await app.page.keyboard.up("Control");
  await (await opened).waitForURL(url);
  await app.page.mouse.move(screen!.x + 100, screen!.y + cell * 8);
  await app.byTestId("link-hint").waitFor({ state: "detached" });
});

test("R27: on a phone, a link opens on a tap", async () => {
  const app = await open({ screen: PHONE });
  const url = `http://${OTHER_NAME}:${new URL(server.url).port}/healthz?tap`;
  await app.visit(
    await server.new("sh", "-c", `printf '\\033]8;;${url}\\007a link to tap\\033]8;;\\007\\r\\n'; exec cat`),
  );
  await app.prints("a link to tap");
  await app.waitForPaint();
  const screen = (await app.page.locator(".xterm-screen").boundingBox())!;
  const opened = app.context.waitForEvent("page");
  await app.page.touchscreen.tap(screen.x + 30, screen.y + screen.height / (await app.terminalState()).rows / 2);
  await (await opened).waitForURL(url);
  expect(await app.byTestId("link-hint").count()).toBe(0);
});

test("R27, R47: a login link is offered in a notice, once", async () => {
  const app = await open({ initScript: controlClock });
  const messages: string[] = [];
  app.page.on("websocket", (socket) =>
    socket.on("framereceived", ({ payload }) => void messages.push(String(payload))),
  );
  const url = "https://example.org/login/device?user_code=ABCD-1234";
  await app.visit(
    await server.new(
      "sh",
      "-c",
      `read x; echo 'To log in, open ${url}'; echo 'Again: ${url}'; read y; echo later; exec cat`,
    ),
  );
  // Stop the clock, so that the notice stays.
  await clockOf(app).stop();
  await app.type("\r");
  const notice = app.byTestId("notice");
  await notice.locator("text=The program wants to open a link").waitFor();
  expect(await notice.locator("a").getAttribute("href")).toBe(url);
  expect(await notice.locator("a").getAttribute("rel")).toContain("noopener");
  await app.prints("Again:");
  // The session reports a URL once, and before the output that follows it.
  await app.type("\r");
  await app.prints("later");
  expect(
    messages.filter((message) => message.startsWith("{") && (JSON.parse(message) as { type: string }).type === "url"),
  ).toHaveLength(1);
  expect(await notice.count()).toBe(1);
});

test("R47: a call in another session shows a notice, and a bell in this one is shown in the status line", async () => {
  const app = await open({ initScript: controlClock });
  const quiet = await server.shell("quiet");
  const loud = await server.shell("loud");
  // A session that is new on the board shows no notice.
  await app.page.waitForSelector(`[data-session="${loud}"]`);
  await app.visit(quiet);
  await app.prints("ready>");
  // Stop the clock, so that the notice and the bell stay.
  await clockOf(app).stop();
  await server.bowline("send", loud, "--enter", "printf '\\033]777;notify;Build;it is done\\007'");
  await app.page.waitForSelector('[data-testid="notice"]:has-text("loud")');
  await app.page.waitForSelector('[data-testid="notice"]:has-text("it is done")');
  await app.page.click('[data-testid="notice"] a');
  await app.page.waitForSelector('[data-testid="session-name"]:has-text("loud")');
  await app.waitForState("open");
  await app.type("printf '\\a'\r");
  await app.byTestId("bell").waitFor();
});
