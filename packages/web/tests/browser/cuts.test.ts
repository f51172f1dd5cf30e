/** Lines that break: nothing is lost, nothing comes twice, and the page says what is the case. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, afterwards, PHONE, stage } from "./parts/app.ts";
import { clockOf, holdClock } from "./parts/clock.ts";
import { Wire } from "./parts/proxy.ts";
import { attachSockets, watchSockets } from "./parts/sockets.ts";
import { until } from "./parts/until.ts";
import { World } from "./parts/world.ts";

const { world, open } = stage();

const CUTS = 200;

/** A program that prints numbered lines until a file is there, then the word END. */
function counter(stop: string): string {
  return `stty -echo; i=1; while [ ! -e ${stop} ]; do echo "line $i of the count, ${"which goes on ".repeat(7)}until it is told to stop"
    i=$((i + 1)); read -rt 0.01; done; echo END; exec cat`;
}

/** The lines of a counter that are kept are all there, once and in order; the last one's number. */
function expectWhole(text: string): number {
  const numbers = [...text.matchAll(/^line (\d+) of the count, .* stop$/gm)].map((match) => Number(match[1]));
  const first = numbers[0] ?? 0;
  expect(numbers.findIndex((number, at) => number !== first + at)).toBe(-1);
  return numbers.at(-1) ?? 0;
}

/** Where two texts differ first, for people to read. */
function firstDifference(one: string, other: string): string | undefined {
  const [ours, theirs] = [one.split("\n"), other.split("\n")];
  const at = ours.findIndex((line, row) => line !== theirs[row]);
  if (at < 0 && ours.length === theirs.length) return undefined;
  const around = (lines: string[]) => lines.slice(Math.max(at - 2, 0), at + 3).join("\n");
  return `line ${at} of ${ours.length} and ${theirs.length}:\n${around(ours)}\n-- and --\n${around(theirs)}`;
}

/** The network says that it is back: the page dials at once, and its tries are not used up. */
async function online({ page }: App): Promise<void> {
  await page.evaluate(() => void dispatchEvent(new Event("online")));
}

test(
  `R9: ${CUTS} cuts during numbered output leave the text of a terminal that was never cut`,
  { timeout: 240_000 },
  async () => {
    const wire = afterwards(await Wire.to(world.url));
    const stop = join(world.folder, "stop-cuts");
    const cut = await open({ base: wire.url, rough: true, before: watchSockets });
    const whole = await open();
    const id = await world.new("bash", "-c", counter(stop));
    for (const app of [whole, cut]) {
      await app.visit(id);
      // It has a place to go on from.
      await app.prints(/^line \d+ of/m);
    }
    // From now on each connection breaks, some in the greeting, most in the middle of a line. (Seeded: every run is alike.)
    let seed = 7;
    const random = (below: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return (seed >>> 16) % below;
    };
    wire.cutting = () => ({ whole: 1 + random(4), part: random(100) / 100 });
    // The network comes back each time: the page dials at once, and its tries are not used up.
    await cut.page.evaluate(() => {
      const lost = () =>
        document.querySelector('[data-testid="connection"]')?.getAttribute("data-state") === "reconnecting";
      setInterval(() => lost() && dispatchEvent(new Event("online")), 20);
    });
    wire.cut();
    const before = wire.attaches;
    await until(
      "the cuts",
      () => wire.attaches > before + CUTS,
      () => `${wire.attaches - before} dials`,
      200_000,
    );
    wire.cutting = undefined;
    writeFileSync(stop, "");
    const [one, other] = [await cut.prints(/^END$/m), await whole.prints(/^END$/m)];
    const sockets = await attachSockets(cut.page);
    const verdicts = sockets.map(({ verdict, reason }) => [verdict, reason].join(" ").trim()).filter(Boolean);
    // The first had nothing yet; all others went on where they were, unless they were cut before a word was said.
    expect(verdicts[0]).toBe("snapshot fresh");
    expect(verdicts.slice(1).filter((verdict) => verdict !== "exact")).toEqual([]);
    expect(verdicts.length).toBeGreaterThan(CUTS / 2);
    expect(firstDifference(one.text, other.text)).toBeUndefined();
    expect(expectWhole(one.text)).toBeGreaterThan(CUTS);
    expect(sockets.length).toBeGreaterThan(CUTS);
    // What is typed afterwards arrives.
    await cut.type("still here\r");
    await cut.prints("still here");
  },
);

test("R10: the page says that the line is cut, counts down, and tries on a click", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, rough: true, before: holdClock });
  const clock = clockOf(app);
  await app.visit(await world.shell());
  await app.prints("ready>");
  await clock.stop();
  wire.refusing = true;
  wire.cut();
  await app.page.waitForSelector('[data-testid="connection"]:has-text("Connection lost, trying again in 1 s")');
  const left = async () => Number(/trying again in (\d+) s/.exec((await app.part("connection").textContent())!)?.[1]);
  // After some tries it waits for longer.
  const long = await until("a wait of some seconds", async () => {
    const seconds = await left();
    if (seconds >= 3) return seconds;
    await clock.advance(500);
    return undefined;
  });
  await clock.advance(1000);
  await until("it counts down", async () => (await left()) < long);
  // Time stands still, so that it is the click that brings it back.
  wire.refusing = false;
  await app.page.click('button:has-text("Try now")');
  await app.page.waitForSelector('[data-testid="connection"]:has-text("Connected")');
});

test("R7, R17: after all tries it is quiet, and a click or the network brings it back", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, rough: true, before: holdClock });
  const clock = clockOf(app);
  await app.visit(await world.shell());
  await app.prints("ready>");
  for (const back of ["click", "online"]) {
    await clock.stop();
    wire.refusing = true;
    wire.cut();
    // 12 tries, of up to 10 s each.
    await until("it has given up", async () => {
      const gaveUp = (await app.part("connection").getAttribute("data-state")) === "offline";
      if (!gaveUp) await clock.advance(1000);
      return gaveUp;
    });
    await clock.run();
    await app.page.waitForSelector('[data-testid="connection"]:has-text("Not connected")');
    wire.refusing = false;
    if (back === "click") await app.page.click('button:has-text("Reconnect")');
    else await online(app);
    await app.state("open");
    await app.type(`echo $((40 + 2)) by ${back}\r`);
    await app.prints(`42 by ${back}`);
  }
});

test("R12: a socket that the browser still calls open after a sleep is not believed", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, rough: true, before: [watchSockets, holdClock], screen: PHONE });
  const clock = clockOf(app);
  const id = await world.shell();
  await app.visit(id);
  await app.prints("ready>");
  // The network goes without a word, then comes back: offline by the browser's own protocol leaves the socket as it is.
  const devtools = await app.context.newCDPSession(app.page);
  const offline = (offline: boolean) =>
    devtools.send("Network.emulateNetworkConditions", {
      offline,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: -1,
    });
  await devtools.send("Network.enable");
  await offline(true);
  wire.hold();
  await world.bowline("send", id, "--enter", "echo while $((10 + 7)) asleep");
  await until("the session printed", async () => (await world.screen(id)).includes("while 17 asleep"));
  expect(await attachSockets(app.page)).toMatchObject([{ state: 1, code: 0 }]);
  expect((await app.shown()).text).not.toContain("while 17 asleep");
  // Chromium fires `online`: the probe goes unanswered for its time, and no other passes. One new dial is made.
  await app.page.evaluate(() => addEventListener("online", () => Object.assign(window, { back: true })));
  await clock.stop();
  await offline(false);
  await until("the page is told", () => app.page.evaluate(() => "back" in window));
  await clock.advance(2000);
  const { text } = await app.prints("while 17 asleep");
  expect(text.match(/while 17 asleep/g)).toHaveLength(1);
  const sockets = await attachSockets(app.page);
  expect(sockets).toHaveLength(2);
  expect(sockets[1]).toMatchObject({ state: 1, verdict: "exact" });
  await clock.run();
  await app.type("echo typed $((1 + 1))\r");
  await app.prints("typed 2");
});

test("R16: keys typed while the line is cut arrive once, in order", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, rough: true });
  await app.visit(await world.shell());
  await app.prints("ready>");
  wire.refusing = true;
  wire.cut();
  await app.state("reconnecting");
  await app.type("echo kept $((20 + 3))\r");
  await app.page.waitForSelector('[data-testid="waiting"]:has-text("typed bytes wait")');
  wire.refusing = false;
  await online(app);
  const { text } = await app.prints("kept 23");
  expect(text.match(/kept 23/g)).toHaveLength(1);
  expect(text.match(/echo kept/g)).toHaveLength(1);
});

/** A shell in a page whose line can be cut, and whose time can be moved on, as it does for a page that slept. */
async function sleeper(): Promise<{ app: App; away(what: () => Promise<void>): Promise<void> }> {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, rough: true, before: holdClock });
  await app.visit(await world.shell());
  await app.prints("ready>");
  const away = async (what: () => Promise<void>) => {
    wire.refusing = true;
    wire.cut();
    await app.state("reconnecting");
    await what();
    await clockOf(app).sleep(60_000);
    wire.refusing = false;
    await online(app);
    await app.state("open");
  };
  return { app, away };
}

/** Sends or discards what was not sent. */
async function decide({ page }: App, word: "Send" | "Discard"): Promise<void> {
  await page.click(`[data-testid="unsent"] button:has-text("${word}")`);
  await page.waitForSelector('[data-testid="unsent"]', { state: "detached" });
}

test("R16: keys typed long before the line is back are shown, and go only on the user's word", async () => {
  const { app, away } = await sleeper();
  for (const word of ["Discard", "Send"] as const) {
    await away(() => app.type(`echo ${word} $((50 + 5))\r`));
    await app.page.waitForSelector(`[data-testid="unsent"]:has-text("echo ${word} $((50 + 5))⏎")`);
    await decide(app, word);
  }
  const { text } = await app.prints("Send 55");
  expect(text).not.toContain("Discard");
});

test("R16: a paste that is larger than what is sent at once is discarded as a whole", async () => {
  const { app, away } = await sleeper();
  await away(() =>
    app.page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: { paste(text: string): void };
      };
      terminal.paste("echo pasted\n".repeat(40_000));
    }),
  );
  await decide(app, "Discard");
  await app.type("echo after $((1 + 1))\r");
  const { text } = await app.prints("after 2");
  expect(text).not.toContain("pasted");
});

test("R16: a paste that is larger than what can wait is refused whole", async () => {
  const { app } = await sleeper();
  await app.page.evaluate(() => {
    const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
      terminal: { paste(text: string): void };
    };
    terminal.paste("echo pasted\n".repeat(800_000));
  });
  await app.page.waitForSelector("text=This is more than can wait to be sent");
  await app.type("echo after $((1 + 1))\r");
  const { text } = await app.prints("after 2");
  expect(text).not.toContain("pasted");
});

test("R16: what was not sent waits over another absence and a restart of the session, and is sent as a whole", async () => {
  const { app, away } = await sleeper();
  await away(() => app.type("echo one $((3+4)); "));
  await app.part("unsent").waitFor();
  await away(() => app.type("echo two $((4+4))\r"));
  await app.page.waitForSelector('[data-testid="unsent"]:has-text("echo one $((3+4)); echo two $((4+4))⏎")');
  await app.type("exit\r");
  await app.state("ended");
  expect(await app.page.locator('[data-testid="unsent"] button').allTextContents()).toEqual(["Discard"]);
  await app.page.click('button:has-text("Restart")');
  await app.state("open");
  await app.prints("ready>");
  await decide(app, "Send");
  const { text } = await app.prints("two 8");
  expect(text.match(/one 7/g)).toHaveLength(1);
});

test("R9: a gateway that is killed and started again is found again, with everything that was printed meanwhile", async () => {
  const own = afterwards(await World.start());
  const stop = join(own.folder, "stop");
  const app = await open({ of: own, rough: true, before: watchSockets });
  const id = await own.new("bash", "-c", counter(stop));
  await app.visit(id);
  const reached = (text: string) => Number([...text.matchAll(/^line (\d+) of/gm)].at(-1)?.[1] ?? 0);
  for (let kill = 0; kill < 2; kill++) {
    const seen = reached((await app.prints(/^line \d+ of.*stop$/m)).text);
    await own.killGateway();
    await app.state("reconnecting");
    await until("the session went on alone", async () => reached(await own.screen(id)) >= seen + 50);
    await own.startGateway();
    await app.state("open");
    await app.prints(`line ${seen + 50} of`);
  }
  writeFileSync(stop, "");
  expectWhole((await app.prints(/^END$/m)).text);
  const verdicts = (await attachSockets(app.page)).map(({ verdict }) => verdict).filter(Boolean);
  expect(verdicts).toEqual(["snapshot", "exact", "exact"]);
  // The board came back as well, and the login holds.
  await app.page.click('[aria-label="Back to the board"]');
  await app.page.waitForSelector(`[data-session="${id}"][data-state="running"]`);
  await app.part("board-state").waitFor({ state: "detached" });
});
