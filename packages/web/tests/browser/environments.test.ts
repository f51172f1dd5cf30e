/** Tests special environments: no storage, duplicated tabs, no secure context, a gateway under a path. */
import { expect, test } from "vitest";
import { browserSuite, DESKTOP, PHONE, stopAfterTest } from "./parts/app.ts";
import { PrefixProxy } from "./parts/proxy.ts";
import { OTHER_NAME } from "./parts/setup.ts";
import { TestServer } from "./parts/server.ts";

const { server, open } = browserSuite();

test("R38: storage that throws breaks nothing; the app just forgets its settings", async () => {
  const app = await open({
    initScript: () => {
      const refuse = () => {
        throw new DOMException("The operation is insecure.", "SecurityError");
      };
      for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { get: refuse });
    },
  });
  const id = await server.shell();
  await app.page.click(`[data-session="${id}"] a`);
  await app.waitForState("open");
  await app.prints("ready>");
  await app.type("echo private $((3 * 3))\r");
  await app.prints("private 9");
  await app.page.click('[aria-label="Larger font"]');
  await app.page.click('[aria-label="Back to the board"]');
  await app.page.click(`[data-session="${id}"] a`);
  await app.prints("private 9");
});

test("R38: a duplicated tab is a second client: both stay attached, both type, nothing is lost", async () => {
  const id = await server.new("sh", "-c", "stty -echo; while read line; do echo got $line; done");
  const first = await open();
  await first.visit(id);
  // A browser copies the URL and the session storage into a duplicated tab.
  const copied = await first.page.evaluate(() => Object.entries(sessionStorage));
  expect(copied.map(([name]) => name)).toContain("bowline.client");
  const second = await open({ sharing: first });
  await second.page.evaluate(
    (copied) => copied.forEach(([name, value]) => sessionStorage.setItem(name, value)),
    copied,
  );
  await second.page.goto("about:blank");
  await second.visit(id);
  await first.page.waitForSelector('[data-testid="presence"]:has-text("1 other viewer")');
  // They take turns, since input of two keyboards on one line would mix.
  for (let turn = 1; turn <= 10; turn++) {
    await first.type(`first-${turn}\r`);
    await second.prints(`got first-${turn}`);
    await second.type(`second-${turn}\r`);
    await first.prints(`got second-${turn}`);
  }
  for (const app of [first, second]) {
    const { text } = await app.prints("got second-10");
    for (const client of ["first", "second"]) {
      const got = [...text.matchAll(new RegExp(`^got ${client}-(\\d+)$`, "gm"))].map((match) => Number(match[1]));
      expect(got).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
    expect(await app.byTestId("connection").getAttribute("data-state")).toBe("open");
  }
});

test.each([
  ["a laptop", DESKTOP],
  ["a phone", PHONE],
])("R38, R53: on %s, the app works over plain HTTP without a secure context", async (_, screen) => {
  const base = server.url.replace("127.0.0.1", OTHER_NAME);
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
  await page.getByLabel("Command").fill("exec sh");
  await page.click('dialog button:has-text("Start session")');
  await app.waitForState("open");
  await app.type("echo plain $((5 * 5))\r");
  await app.prints("plain 25");
  await page.reload();
  await app.waitForState("open");
  await app.prints("plain 25");
});

test("R50: two gateways under paths of one origin keep separate logins and caches", async () => {
  const own = stopAfterTest(await TestServer.start("--base-path", "/terminals"));
  const proxy = stopAfterTest(await PrefixProxy.to(own.url, "/terminals"));
  // The state of the gateway at the root.
  const initScript = () => {
    if (localStorage.getItem("bowline.key") !== null) return;
    localStorage.setItem("bowline.key", "the other's");
    void caches.open("bowline / 0123456789ab");
  };
  const app = await open({ server: own, base: proxy.url, initScript });
  await app.page.evaluate(() => navigator.serviceWorker.ready);
  await app.page.reload();
  await app.page.waitForSelector("text=New session");
  const stored = () =>
    app.page.evaluate(async () => [
      localStorage.getItem("bowline.key"),
      ...(await caches.keys()).map((name) => name.split(" ")[1]).sort(),
    ]);
  expect(await stored()).toEqual(["the other's", "/", "/terminals/"]);
});

test("R53: under a path of a proxy, everything works and the cookie is limited to that path", async () => {
  const own = stopAfterTest(await TestServer.start("--base-path", "/terminals"));
  const proxy = stopAfterTest(await PrefixProxy.to(own.url, "/terminals"));
  const app = await open({ server: own, base: proxy.url });
  const { page } = app;
  expect(new URL(page.url()).pathname).toBe("/terminals/");
  const cookies = await app.context.cookies();
  expect(cookies).toMatchObject([{ path: "/terminals", httpOnly: true, sameSite: "Strict" }]);
  await page.click("text=New session >> nth=0");
  await page.getByLabel("Command").fill("exec sh");
  await page.click('dialog button:has-text("Start session")');
  await app.waitForState("open");
  await app.type("echo below $((6 * 6))\r");
  await app.prints("below 36");
  await page.reload();
  await app.waitForState("open");
  await app.prints("below 36");
  // The service worker is limited to this path.
  const scope = await page.evaluate(async () => (await navigator.serviceWorker.ready).scope);
  expect(scope).toBe(`${proxy.url}/`);
});
