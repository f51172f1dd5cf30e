/** Ends that are meant: the page stops trying, says why, and shows the way back. */
import { expect, test } from "vitest";
import { afterwards, PHONE, stage } from "./parts/app.ts";
import { clockOf, holdClock } from "./parts/clock.ts";
import { Wire } from "./parts/proxy.ts";
import { attachSockets, watchSockets } from "./parts/sockets.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();

test("R3: a session that was ended elsewhere is given up at the first 4404", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, before: [watchSockets, holdClock], rough: true });
  const id = await world.shell();
  await app.visit(id);
  // Until somebody clicks, no time passes in the page, and so it does not try by itself.
  await clockOf(app).stop();
  // The line is down while it is ended and forgotten, so that nobody could tell this page.
  wire.refusing = true;
  wire.cut();
  await app.state("reconnecting");
  await world.bowline("kill", id);
  const before = wire.attaches;
  wire.refusing = false;
  await app.page.click('button:has-text("Try now")');
  await app.state("gone");
  await clockOf(app).run();
  await app.page.waitForSelector("text=There is no such session");
  expect(wire.attaches).toBe(before + 1);
  expect((await attachSockets(app.page)).at(-1)).toMatchObject({ code: 4404 });
  // Waking it changes nothing: what is permanent is not tried again.
  await app.page.evaluate(() => void dispatchEvent(new Event("online")));
  await app.page.click('button:has-text("Back to the board")');
  await app.page.waitForSelector("text=No sessions yet");
  expect(wire.attaches).toBe(before + 1);
});

test("R3: a session that is ended and forgotten while somebody looks says so", async () => {
  const app = await open({ before: watchSockets });
  const id = await world.shell();
  await app.visit(id);
  await world.bowline("kill", id);
  await app.page.waitForSelector('[data-testid="exit"], [data-state="gone"]');
  expect(await attachSockets(app.page)).toHaveLength(1);
});

test("R3: an address of no session says so at once", async () => {
  const app = await open({ before: watchSockets, rough: true });
  await app.page.goto(`${app.base}/#/s/nosuchthing0`);
  await app.state("gone");
  await app.page.waitForSelector("text=There is no such session");
  expect(await attachSockets(app.page)).toEqual([]);
  await app.page.click("text=Back to the board");
  await app.page.waitForSelector("text=No sessions yet");
});

test("R15: an exit is the end: the status is shown, and nothing is dialled any more", async () => {
  const app = await open({ before: watchSockets });
  await app.visit(await world.new("sh", "-c", "read x; echo goodbye; exit 7"));
  await app.type("\r");
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited with code 7")');
  await app.prints("goodbye");
  await app.page.evaluate(() => void dispatchEvent(new Event("online")));
  // The gateway has its part in the closing, after the exit is shown.
  await until("the connection is closed", async () => (await attachSockets(app.page)).every(({ code }) => code !== 0));
  expect(await attachSockets(app.page)).toMatchObject([{ code: 1000 }]);
});

test.each([
  ["a laptop", undefined],
  ["a phone", PHONE],
])("R10: a revoked login on %s leads to the login screen, and a new link back to the same place", async (_, screen) => {
  const app = await open(screen ? { screen, rough: true } : { rough: true });
  const id = await world.shell();
  await app.visit(id);
  await app.prints("ready>");
  await app.type("echo before $((1 + 1))\r");
  await app.prints("before 2");
  const { tokens } = JSON.parse(await world.bowline("token", "ls", "--json")) as {
    tokens: { id: string; kind: string; created: string }[];
  };
  const logins = tokens.filter(({ kind }) => kind === "login").sort((a, b) => a.created.localeCompare(b.created));
  await world.bowline("token", "revoke", ...logins.map((login) => login.id));
  await app.page.waitForSelector("text=The login was revoked or has expired");
  // What is behind cannot be reached.
  expect(await app.page.evaluate(() => document.querySelector("main")?.inert)).toBe(true);
  await world.bowline("send", id, "--enter", "echo meanwhile $((2 + 1))");
  await app.page.goto(await world.loginLink());
  await app.state("open");
  await app.part("login-code").waitFor({ state: "detached" });
  expect(app.page.url()).toBe(`${app.base}/#/s/${id}`);
  const { text } = await app.prints("meanwhile 3");
  expect(text).toContain("before 2");
  await app.type("echo after $((3 + 1))\r");
  await app.prints("after 4");
});

test("R15: leaving a terminal closes its connection and removes what it listened to", async () => {
  const app = await open({
    before: () => {
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
  const id = await world.shell("left");
  await page.waitForSelector(`[data-session="${id}"]`);
  const before = await listening();
  expect(before.every((count) => count > 0)).toBe(true);
  for (let visit = 0; visit < 3; visit++) {
    await page.click(`[data-session="${id}"] a`);
    await app.state("open");
    expect((await listening())[4]).toBe(before[4]! + 1);
    await page.click('[aria-label="Back to the board"]');
    await page.waitForSelector(`[data-session="${id}"]`);
  }
  expect(await listening()).toEqual(before);
  const attached = async () => JSON.parse(await world.bowline("ls", "--json")).sessions[0].clients as number;
  await until("nobody is attached", async () => (await attached()) === 0);
});
