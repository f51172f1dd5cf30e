/** Who answers, who reads, who opens: the session answers a program once; pages show, and act on the user's word. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stage } from "./parts/app.ts";
import { clockOf, holdClock } from "./parts/clock.ts";
import { OTHER_NAME } from "./parts/setup.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();

/** What a program may ask a terminal, and the form of the one answer. */
const QUESTIONS: readonly (readonly [ask: string, answer: RegExp])[] = [
  ["\\033[c", /\x1b\[\?[\d;]+c/g],
  ["\\033[>c", /\x1b\[>[\d;]+c/g],
  ["\\033[5n", /\x1b\[0n/g],
  ["\\033[6n", /\x1b\[\d+;\d+R/g],
  ["\\033[?2004$p", /\x1b\[\?2004;\d\$y/g],
  ["\\033]10;?\\007", /\x1b\]10;rgb:[\da-f/]+(?:\x07|\x1b\\)/g],
  ["\\033]11;?\\007", /\x1b\]11;rgb:[\da-f/]+(?:\x07|\x1b\\)/g],
];

test("R24: with three pages attached, a program gets one answer to each question, also when they are replayed", async () => {
  const heard = join(world.folder, "heard");
  const asks = QUESTIONS.map(([ask]) => ask).join("");
  const id = await world.new(
    "sh",
    "-c",
    `stty raw -echo; : >${heard}; printf 'hello\\r\\n'; head -c 1 >/dev/null; printf '${asks}'; printf 'asked\\r\\n'; exec cat >${heard}`,
  );
  const apps = [await open(), await open(), await open()];
  for (const app of apps) await app.visit(id);
  await apps[0]!.prints("hello");
  await apps[0]!.type("!");
  for (const app of apps) await app.prints("asked");
  // Replayed to one more, who has seen nothing.
  await apps[2]!.page.reload();
  await apps[2]!.prints("asked");
  // Whatever a page had answered would be before what is typed into it now. Each waits for the other: nobody else orders them.
  const all = () => readFileSync(heard, "latin1");
  const rest = () => QUESTIONS.reduce((text, [, answer]) => text.replace(answer, ""), all());
  for (const [at, app] of apps.entries()) {
    await app.type("xyz"[at]!);
    await until(
      "what was typed arrived",
      () => rest().includes("xyz"[at]!),
      () => JSON.stringify(all()),
    );
  }
  for (const [ask, answer] of QUESTIONS) expect([ask, all().match(answer)?.length ?? 0]).toEqual([ask, 1]);
  expect(rest()).toBe("xyz");
});

test("R29: a program writes to the clipboard, and never reads it", async () => {
  const heard = join(world.folder, "read");
  const app = await open();
  await app.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: app.base });
  await app.page.evaluate(() => navigator.clipboard.writeText("a secret of the user's"));
  const words = Buffer.from("from the program: ✓").toString("base64");
  const script = `stty raw -echo; : >${heard}; head -c 1 >/dev/null; printf '\\033]52;c;?\\007\\033]52;c;${words}\\007\\033]52;c;?\\007done\\r\\n'; exec cat >${heard}`;
  await app.visit(await world.new("sh", "-c", script));
  await app.type("!");
  await app.prints("done");
  const clipboard = () => app.page.evaluate(() => navigator.clipboard.readText());
  await until("the clipboard has it", async () => (await clipboard()) === "from the program: ✓", clipboard);
  await app.type("x");
  await until("what was typed arrived", () => readFileSync(heard, "latin1").includes("x"));
  expect(readFileSync(heard, "latin1")).toBe("x");
});

test("R27: a link that wraps is found whole, and opened on a click", async () => {
  const app = await open();
  const url = `http://${OTHER_NAME}:${new URL(world.url).port}/healthz?${"long=query&".repeat(20)}end`;
  await app.visit(await world.new("sh", "-c", `printf 'see \\033[4m%s\\033[0m for more\\r\\n' '${url}'; exec cat`));
  await app.prints("for more");
  await app.drawn();
  const screen = await app.page.locator(".xterm-screen").boundingBox();
  const { rows } = await app.shown();
  const cell = screen!.height / rows;
  // The second row of the link.
  const opened = app.context.waitForEvent("page");
  await app.page.mouse.move(screen!.x + 100, screen!.y + cell * 1.5, { steps: 4 });
  await app.page.waitForSelector(".xterm-cursor-pointer");
  await app.page.mouse.click(screen!.x + 100, screen!.y + cell * 1.5);
  await (await opened).waitForURL(url);
});

test("R27, R47: a link that asks for a login is offered in a notice, once", async () => {
  const app = await open({ before: holdClock });
  const told: string[] = [];
  app.page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => void told.push(String(payload))));
  const url = "https://example.org/login/device?user_code=ABCD-1234";
  await app.visit(
    await world.new(
      "sh",
      "-c",
      `read x; echo 'To log in, open ${url}'; echo 'Again: ${url}'; read y; echo later; exec cat`,
    ),
  );
  // A notice is there for some seconds: no time passes while it is looked at.
  await clockOf(app).stop();
  await app.type("\r");
  const notice = app.part("notice");
  await notice.locator("text=The program asks you to open a page").waitFor();
  expect(await notice.locator("a").getAttribute("href")).toBe(url);
  expect(await notice.locator("a").getAttribute("rel")).toContain("noopener");
  await app.prints("Again:");
  // The session tells it once; whatever it tells comes before what is printed after it.
  await app.type("\r");
  await app.prints("later");
  expect(
    told.filter((message) => message.startsWith("{") && (JSON.parse(message) as { type: string }).type === "url"),
  ).toHaveLength(1);
  expect(await notice.count()).toBe(1);
});

test("R47: a session that calls while another is looked at says so in the page; the bell of this one is shown", async () => {
  const app = await open({ before: holdClock });
  const quiet = await world.shell("quiet");
  const loud = await world.shell("loud");
  // What the board hears of for the first time is no news.
  await app.page.waitForSelector(`[data-session="${loud}"]`);
  await app.visit(quiet);
  await app.prints("ready>");
  // A notice and a bell are there for some seconds: no time passes while they are looked at.
  await clockOf(app).stop();
  await world.bowline("send", loud, "--enter", "printf '\\033]777;notify;Build;it is done\\007'");
  await app.page.waitForSelector('[data-testid="notice"]:has-text("loud")');
  await app.page.waitForSelector('[data-testid="notice"]:has-text("it is done")');
  await app.page.click('[data-testid="notice"] a');
  await app.page.waitForSelector('[data-testid="session-name"]:has-text("loud")');
  await app.state("open");
  await app.type("printf '\\a'\r");
  await app.part("bell").waitFor();
});
