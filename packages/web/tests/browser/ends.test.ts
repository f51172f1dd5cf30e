/** Tests permanent ends: the page stops reconnecting, says why, and offers the way back to the board. */
import { expect, test } from "vitest";
import { browserSuite, PHONE, stopAfterTest } from "./parts/app.ts";
import { clockOf, controlClock } from "./parts/clock.ts";
import { Wire } from "./parts/proxy.ts";
import { attachSockets, watchSockets } from "./parts/sockets.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

test("R3: a session that was ended elsewhere is given up at the first 4404", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, initScript: [watchSockets, controlClock], networkErrors: true });
  const id = await server.shell();
  await app.visit(id);
  // Stop the clock, so that the page does not retry until the click.
  await clockOf(app).stop();
  // The connection is cut while the session is ended and forgotten, so the page cannot be notified.
  wire.refusing = true;
  wire.cut();
  await app.waitForState("reconnecting");
  await server.bowline("kill", id);
  const before = wire.attaches;
  wire.refusing = false;
  await app.page.click('button:has-text("Retry now")');
  await app.waitForState("gone");
  await clockOf(app).run();
  await app.page.waitForSelector("text=Session not found");
  expect(wire.attaches).toBe(before + 1);
  expect((await attachSockets(app.page)).at(-1)).toMatchObject({ code: 4404 });
  // A wake does not retry a permanent failure.
  await app.page.evaluate(() => void dispatchEvent(new Event("online")));
  await app.page.click('button:has-text("Back to the board")');
  await app.page.waitForSelector("text=No sessions yet");
  expect(wire.attaches).toBe(before + 1);
});

test("R3: a session that is ended and forgotten while it is viewed says so", async () => {
  const app = await open({ initScript: watchSockets });
  const id = await server.shell();
  await app.visit(id);
  await server.bowline("kill", id);
  await app.page.waitForSelector('[data-testid="exit"], [data-state="gone"]');
  expect(await attachSockets(app.page)).toHaveLength(1);
});

test("R3: a URL of an unknown session says so at once", async () => {
  const app = await open({ initScript: watchSockets, networkErrors: true });
  await app.page.goto(`${app.base}/#/s/nosuchthing0`);
  await app.waitForState("gone");
  await app.page.waitForSelector("text=Session not found");
  expect(await attachSockets(app.page)).toEqual([]);
  await app.page.click("text=Back to the board");
  await app.page.waitForSelector("text=No sessions yet");
});

test("R15: after an exit the status is shown, and the page does not reconnect", async () => {
  const app = await open({ initScript: watchSockets });
  await app.visit(await server.new("sh", "-c", "read x; echo goodbye; exit 7"));
  await app.type("\r");
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited with code 7")');
  await app.prints("goodbye");
  await app.page.evaluate(() => void dispatchEvent(new Event("online")));
  // The close handshake with the gateway completes after the exit is shown.
  await until("the connection is closed", async () => (await attachSockets(app.page)).every(({ code }) => code !== 0));
  expect(await attachSockets(app.page)).toMatchObject([{ code: 1000 }]);
});

test.each([
  ["a laptop", undefined],
  ["a phone", PHONE],
])("R10: on %s, a revoked login leads to the login page, and a new link back to the same page", async (_, screen) => {
  const app = await open(screen ? { screen, networkErrors: true } : { networkErrors: true });
  const id = await server.shell();
  await app.visit(id);
  await app.prints("ready>");
  await app.type("echo before $((1 + 1))\r");
  await app.prints("before 2");
  const { tokens } = JSON.parse(await server.bowline("token", "ls", "--json")) as {
    tokens: { id: string; kind: string; created: string }[];
  };
  const logins = tokens.filter(({ kind }) => kind === "login").sort((a, b) => a.created.localeCompare(b.created));
  await server.bowline("token", "revoke", ...logins.map((login) => login.id));
  await app.page.waitForSelector("text=Your login was revoked or has expired");
  // The page behind the login is inert.
  expect(await app.page.evaluate(() => document.querySelector("main")?.inert)).toBe(true);
  await server.bowline("send", id, "--enter", "echo meanwhile $((2 + 1))");
  await app.page.goto(await server.loginLink());
  await app.waitForState("open");
  await app.byTestId("login-code").waitFor({ state: "detached" });
  expect(app.page.url()).toBe(`${app.base}/#/s/${id}`);
  const { text } = await app.prints("meanwhile 3");
  expect(text).toContain("before 2");
  await app.type("echo after $((3 + 1))\r");
  await app.prints("after 4");
});

test("R15: leaving a terminal closes its connection and removes its event listeners", async () => {
  const app = await open({
    initScript: () => {
      const counts = new Map<string, number>();
      const note = (target: object, name: string, by: number) => {
        const key = `${target === window ? "window" : "document"} ${name}`;
        counts.set(key, (counts.get(key) ?? 0) + by);
      };
      for (const target of [window, document]) {
        const { addEventListener, removeEventListener } = target;
        target.addEventListener = (...args: Parameters<typeof addEventListener>) => {
          note(target, args[0], 1);
          addEventListener.apply(target, args);
        };
        target.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
          note(target, args[0], -1);
          removeEventListener.apply(target, args);
        };
      }
      const names = [
        "document visibilitychange",
        "document freeze",
        "document resume",
        "window pageshow",
        "window online",
      ];
      Object.assign(window, { listening: () => names.map((name) => counts.get(name) ?? 0) });
    },
  });
  const { page } = app;
  const listening = () => page.evaluate(() => (window as unknown as { listening(): number[] }).listening());
  const id = await server.shell("left");
  await page.waitForSelector(`[data-session="${id}"]`);
  const before = await listening();
  expect(before.every((count) => count > 0)).toBe(true);
  for (let visit = 0; visit < 3; visit++) {
    await page.click(`[data-session="${id}"] a`);
    await app.waitForState("open");
    expect((await listening())[4]).toBe(before[4]! + 1);
    await page.click('[aria-label="Back to the board"]');
    await page.waitForSelector(`[data-session="${id}"]`);
  }
  expect(await listening()).toEqual(before);
  const attached = async () => JSON.parse(await server.bowline("ls", "--json")).sessions[0].clients as number;
  await until("no viewer is attached", async () => (await attached()) === 0);
});
