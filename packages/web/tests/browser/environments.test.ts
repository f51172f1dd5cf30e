/** Where browsers are: private, doubled, without a secure context, behind somebody's path. */
import { expect, test } from "vitest";
import { afterwards, DESKTOP, PHONE, stage } from "./parts/app.ts";
import { PrefixProxy } from "./parts/proxy.ts";
import { OTHER_NAME } from "./parts/setup.ts";
import { World } from "./parts/world.ts";

const { world, open } = stage();

test("R38: storage that throws breaks nothing but memory", async () => {
  const app = await open({
    before: () => {
      const refuse = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
      for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { get: refuse });
    },
  });
  const id = await world.shell();
  await app.page.click(`[data-session="${id}"] a`);
  await app.state("open");
  await app.prints("ready>");
  await app.type("echo private $((3 * 3))\r");
  await app.prints("private 9");
  await app.page.click('[aria-label="Larger font"]');
  await app.page.click('[aria-label="Back to the board"]');
  await app.page.click(`[data-session="${id}"] a`);
  await app.prints("private 9");
});

test("R38: a doubled tab is a second client: both live, both type, nothing is lost", async () => {
  const id = await world.new("sh", "-c", "stty -echo; while read line; do echo got $line; done");
  const first = await open();
  await first.visit(id);
  // What a browser copies into a doubled tab: the address and the tab's own storage.
  const copied = await first.page.evaluate(() => Object.entries(sessionStorage));
  expect(copied.map(([name]) => name)).toContain("bowline.client");
  const second = await open({ beside: first });
  await second.page.evaluate(
    (copied) => copied.forEach(([name, value]) => sessionStorage.setItem(name, value)),
    copied,
  );
  await second.page.goto("about:blank");
  await second.visit(id);
  await first.page.waitForSelector('[data-testid="presence"]:has-text("1 other here")');
  // Each waits for the other: two keyboards on one line would mix their letters, as everywhere.
  for (let turn = 1; turn <= 10; turn++) {
    await first.type(`first-${turn}\r`);
    await second.prints(`got first-${turn}`);
    await second.type(`second-${turn}\r`);
    await first.prints(`got second-${turn}`);
  }
  for (const app of [first, second]) {
    const { text } = await app.prints("got second-10");
    for (const who of ["first", "second"]) {
      const got = [...text.matchAll(new RegExp(`^got ${who}-(\\d+)$`, "gm"))].map((match) => Number(match[1]));
      expect(got).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
    expect(await app.part("connection").getAttribute("data-state")).toBe("open");
  }
});

test.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("R38, R53: plain http under another name works on %s, without a secure context", async (_, screen) => {
  const base = world.url.replace("127.0.0.1", OTHER_NAME);
  const app = await open({ base, screen });
  const { page } = app;
  expect(
    await page.evaluate(() => [
      isSecureContext,
      "randomUUID" in crypto,
      "serviceWorker" in navigator,
      "clipboard" in navigator,
    ]),
  ).toEqual([false, false, false, false]);
  await page.click("text=New session >> nth=0");
  await page.fill("dialog input >> nth=0", "exec sh");
  await page.click('dialog button:has-text("Start session")');
  await app.state("open");
  await app.type("echo plain $((5 * 5))\r");
  await app.prints("plain 25");
  await page.reload();
  await app.state("open");
  await app.prints("plain 25");
});

test("R50: of two gateways under paths of one origin, each leaves the other its login and its files", async () => {
  const own = afterwards(await World.start("--base-path", "/terminals"));
  const proxy = afterwards(await PrefixProxy.to(own.url, "/terminals"));
  // What the gateway at the root keeps.
  const before = () => {
    if (localStorage.getItem("bowline.key") !== null) return;
    localStorage.setItem("bowline.key", "the other's");
    void caches.open("bowline / 0123456789ab");
  };
  const app = await open({ of: own, base: proxy.url, before });
  await app.page.evaluate(() => navigator.serviceWorker.ready);
  await app.page.reload();
  await app.page.waitForSelector("text=New session");
  const kept = () =>
    app.page.evaluate(async () => [
      localStorage.getItem("bowline.key"),
      ...(await caches.keys()).map((name) => name.split(" ")[1]).sort(),
    ]);
  expect(await kept()).toEqual(["the other's", "/", "/terminals/"]);
});

test("R53: under a path of somebody's proxy, everything works and the cookie stays there", async () => {
  const own = afterwards(await World.start("--base-path", "/terminals"));
  const proxy = afterwards(await PrefixProxy.to(own.url, "/terminals"));
  const app = await open({ of: own, base: proxy.url });
  const { page } = app;
  expect(new URL(page.url()).pathname).toBe("/terminals/");
  const cookies = await app.context.cookies();
  expect(cookies).toMatchObject([{ path: "/terminals", httpOnly: true, sameSite: "Strict" }]);
  await page.click("text=New session >> nth=0");
  await page.fill("dialog input >> nth=0", "exec sh");
  await page.click('dialog button:has-text("Start session")');
  await app.state("open");
  await app.type("echo below $((6 * 6))\r");
  await app.prints("below 36");
  await page.reload();
  await app.state("open");
  await app.prints("below 36");
  // The shell of the app is kept for when the gateway is away, under this path alone.
  const scope = await page.evaluate(async () => (await navigator.serviceWorker.ready).scope);
  expect(scope).toBe(`${proxy.url}/`);
});
