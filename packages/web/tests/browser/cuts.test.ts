/** Tests cut connections: no output or input is lost or repeated, and the page shows the state of the connection. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, browserSuite, PHONE, stopAfterTest } from "./parts/app.ts";
import { clockOf, controlClock } from "./parts/clock.ts";
import { Wire } from "./parts/proxy.ts";
import { attachSockets, watchSockets } from "./parts/sockets.ts";
import { until } from "./parts/until.ts";
import { TestServer } from "./parts/server.ts";

const { server, open } = browserSuite();

const CUTS = 200;

/** A program that prints numbered lines until the file `stop` exists, then the word END. */
function counter(stop: string): string {
  return `stty -echo; i=1; while [ ! -e ${stop} ]; do echo "line $i of the count, ${"which goes on ".repeat(7)}until it is told to stop"
    i=$((i + 1)); read -rt 0.01; done; echo END; exec cat`;
}

/** Checks that the numbered lines are complete and in order. Returns the last number. */
function expectComplete(text: string): number {
  const numbers = [...text.matchAll(/^line (\d+) of the count, .* stop$/gm)].map((match) => Number(match[1]));
  const first = numbers[0] ?? 0;
  expect(numbers.findIndex((number, at) => number !== first + at)).toBe(-1);
  return numbers.at(-1) ?? 0;
}

/** Describes the first difference between two texts, if there is one. */
function firstDifference(one: string, other: string): string | undefined {
  const [ours, theirs] = [one.split("\n"), other.split("\n")];
  const at = ours.findIndex((line, row) => line !== theirs[row]);
  if (at < 0 && ours.length === theirs.length) return undefined;
  const around = (lines: string[]) => lines.slice(Math.max(at - 2, 0), at + 3).join("\n");
  return `line ${at} of ${ours.length} and ${theirs.length}:\n${around(ours)}\n-- and --\n${around(theirs)}`;
}

/** Simulates the network coming back: the page reconnects at once. */
async function online({ page }: App): Promise<void> {
  await page.evaluate(() => void dispatchEvent(new Event("online")));
}

test(
  `R9: after ${CUTS} cuts during numbered output, the terminal has the same text as one that was never cut`,
  { timeout: 240_000 },
  async () => {
    const wire = stopAfterTest(await Wire.to(server.url));
    const stop = join(server.folder, "stop-cuts");
    const cut = await open({ base: wire.url, networkErrors: true, initScript: watchSockets });
    const whole = await open();
    const id = await server.new("bash", "-c", counter(stop));
    for (const app of [whole, cut]) {
      await app.visit(id);
      // Make sure that it has an offset to resume from.
      await app.prints(/^line \d+ of/m);
    }
    // From now on each connection is cut, some during the greeting, most within a line. The seed makes every
    // run the same.
    let seed = 7;
    const random = (below: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return (seed >>> 16) % below;
    };
    wire.cutting = () => ({ whole: 1 + random(4), part: random(100) / 100 });
    // Reconnect at once after each cut, so that the page never gives up.
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
    // The first attach had no offset. All others resumed exactly, unless they were cut before the verdict.
    expect(verdicts[0]).toBe("snapshot fresh");
    expect(verdicts.slice(1).filter((verdict) => verdict !== "exact")).toEqual([]);
    expect(verdicts.length).toBeGreaterThan(CUTS / 2);
    expect(firstDifference(one.text, other.text)).toBeUndefined();
    expect(expectComplete(one.text)).toBeGreaterThan(CUTS);
    expect(sockets.length).toBeGreaterThan(CUTS);
    // Input still arrives.
    await cut.type("still here\r");
    await cut.prints("still here");
  },
);

test("R10: the page reports a lost connection, counts down, and retries on a click", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, networkErrors: true, initScript: controlClock });
  const clock = clockOf(app);
  await app.visit(await server.shell());
  await app.prints("ready>");
  await clock.stop();
  wire.refusing = true;
  wire.cut();
  await app.page.waitForSelector('[data-testid="connection"]:has-text("Connection lost, retrying in 1s")');
  const secondsLeft = async () =>
    Number(/retrying in (\d+)s/.exec((await app.byTestId("connection").textContent())!)?.[1]);
  // The delay grows with each attempt.
  const longest = await until("a delay of several seconds", async () => {
    const seconds = await secondsLeft();
    if (seconds >= 3) return seconds;
    await clock.advance(500);
    return undefined;
  });
  await clock.advance(1000);
  await until("the countdown decreases", async () => (await secondsLeft()) < longest);
  // The clock is stopped, so only the click can reconnect.
  wire.refusing = false;
  await app.page.click('button:has-text("Retry now")');
  await app.page.waitForSelector('[data-testid="connection"]:has-text("Connected")');
});

test("R7, R17: after the last attempt the page stops retrying, until a click or the network reconnects it", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, networkErrors: true, initScript: controlClock });
  const clock = clockOf(app);
  await app.visit(await server.shell());
  await app.prints("ready>");
  for (const back of ["click", "online"]) {
    await clock.stop();
    wire.refusing = true;
    wire.cut();
    // 12 attempts with delays of up to 10 seconds.
    await until("the page gives up", async () => {
      const gaveUp = (await app.byTestId("connection").getAttribute("data-state")) === "offline";
      if (!gaveUp) await clock.advance(1000);
      return gaveUp;
    });
    await clock.run();
    await app.page.waitForSelector('[data-testid="connection"]:has-text("Not connected")');
    wire.refusing = false;
    if (back === "click") await app.page.click('button:has-text("Reconnect")');
    else await online(app);
    await app.waitForState("open");
    await app.type(`echo $((40 + 2)) by ${back}\r`);
    await app.prints(`42 by ${back}`);
  }
});

test("R12: after a sleep, a socket that the browser reports as open is not trusted", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({
    base: wire.url,
    networkErrors: true,
    initScript: [watchSockets, controlClock],
    screen: PHONE,
  });
  const clock = clockOf(app);
  const id = await server.shell();
  await app.visit(id);
  await app.prints("ready>");
  // The network disappears silently, then comes back. Going offline through DevTools leaves the socket open.
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
  wire.stall();
  await server.bowline("send", id, "--enter", "echo while $((10 + 7)) asleep");
  await until("the session has printed", async () => (await server.screen(id)).includes("while 17 asleep"));
  expect(await attachSockets(app.page)).toMatchObject([{ state: 1, code: 0 }]);
  expect((await app.terminalState()).text).not.toContain("while 17 asleep");
  // Chromium fires `online`. The probe times out, and the page connects once more.
  await app.page.evaluate(() => addEventListener("online", () => Object.assign(window, { back: true })));
  await clock.stop();
  await offline(false);
  await until("the page is notified", () => app.page.evaluate(() => "back" in window));
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

test("R16: keys typed while the connection is cut arrive once and in order", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, networkErrors: true });
  await app.visit(await server.shell());
  await app.prints("ready>");
  wire.refusing = true;
  wire.cut();
  await app.waitForState("reconnecting");
  await app.type("echo kept $((20 + 3))\r");
  await app.page.waitForSelector('[data-testid="queued"]:has-text("bytes queued")');
  wire.refusing = false;
  await online(app);
  const { text } = await app.prints("kept 23");
  expect(text.match(/kept 23/g)).toHaveLength(1);
  expect(text.match(/echo kept/g)).toHaveLength(1);
});

/** A shell in a page whose connection can be cut, and whose clock can be advanced as if it slept. */
async function openWithCuts(): Promise<{ app: App; whileOffline(act: () => Promise<void>): Promise<void> }> {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, networkErrors: true, initScript: controlClock });
  await app.visit(await server.shell());
  await app.prints("ready>");
  const whileOffline = async (act: () => Promise<void>) => {
    wire.refusing = true;
    wire.cut();
    await app.waitForState("reconnecting");
    await act();
    await clockOf(app).sleep(60_000);
    wire.refusing = false;
    await online(app);
    await app.waitForState("open");
  };
  return { app, whileOffline };
}

/** Sends or discards the unsent input. */
async function decide({ page }: App, choice: "Send" | "Discard"): Promise<void> {
  await page.click(`[data-testid="unsent"] button:has-text("${choice}")`);
  await page.waitForSelector('[data-testid="unsent"]', { state: "detached" });
}

test("R16: keys typed long before the reconnect are shown, and sent only when the user says so", async () => {
  const { app, whileOffline } = await openWithCuts();
  for (const choice of ["Discard", "Send"] as const) {
    await whileOffline(() => app.type(`echo ${choice} $((50 + 5))\r`));
    await app.page.waitForSelector(`[data-testid="unsent"]:has-text("echo ${choice} $((50 + 5))⏎")`);
    await decide(app, choice);
  }
  const { text } = await app.prints("Send 55");
  expect(text).not.toContain("Discard");
});

test("R16: a paste larger than the send window is discarded completely", async () => {
  const { app, whileOffline } = await openWithCuts();
  await whileOffline(() =>
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

test("R16: a paste above the queue limit is refused completely", async () => {
  const { app } = await openWithCuts();
  await app.page.evaluate(() => {
    const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
      terminal: { paste(text: string): void };
    };
    terminal.paste("echo pasted\n".repeat(800_000));
  });
  await app.page.waitForSelector("text=The input is too large to queue");
  await app.type("echo after $((1 + 1))\r");
  const { text } = await app.prints("after 2");
  expect(text).not.toContain("pasted");
});

test("R16: unsent input survives another disconnect and a restart of the session, and is then sent completely", async () => {
  const { app, whileOffline } = await openWithCuts();
  await whileOffline(() => app.type("echo one $((3+4)); "));
  await app.byTestId("unsent").waitFor();
  await whileOffline(() => app.type("echo two $((4+4))\r"));
  await app.page.waitForSelector('[data-testid="unsent"]:has-text("echo one $((3+4)); echo two $((4+4))⏎")');
  await app.type("exit\r");
  await app.waitForState("ended");
  expect(await app.page.locator('[data-testid="unsent"] button').allTextContents()).toEqual(["Discard"]);
  await app.page.click('button:has-text("Restart")');
  await app.waitForState("open");
  await app.prints("ready>");
  await decide(app, "Send");
  const { text } = await app.prints("two 8");
  expect(text.match(/one 7/g)).toHaveLength(1);
});

test("R9: after the gateway is killed and restarted, the page reconnects and has everything that was printed meanwhile", async () => {
  const own = stopAfterTest(await TestServer.start());
  const stop = join(own.folder, "stop");
  const app = await open({ server: own, networkErrors: true, initScript: watchSockets });
  const id = await own.new("bash", "-c", counter(stop));
  await app.visit(id);
  const lastLine = (text: string) => Number([...text.matchAll(/^line (\d+) of/gm)].at(-1)?.[1] ?? 0);
  for (let kill = 0; kill < 2; kill++) {
    const last = lastLine((await app.prints(/^line \d+ of.*stop$/m)).text);
    await own.killGateway();
    await app.waitForState("reconnecting");
    await until(
      "the session keeps running without the gateway",
      async () => lastLine(await own.screen(id)) >= last + 50,
    );
    await own.startGateway();
    await app.waitForState("open");
    await app.prints(`line ${last + 50} of`);
  }
  writeFileSync(stop, "");
  expectComplete((await app.prints(/^END$/m)).text);
  const verdicts = (await attachSockets(app.page)).map(({ verdict }) => verdict).filter(Boolean);
  expect(verdicts).toEqual(["snapshot", "exact", "exact"]);
  // The board is updated again, and the login is still valid.
  await app.page.click('[aria-label="Back to the board"]');
  await app.page.waitForSelector(`[data-session="${id}"][data-state="running"]`);
  await app.byTestId("board-state").waitFor({ state: "detached" });
});
