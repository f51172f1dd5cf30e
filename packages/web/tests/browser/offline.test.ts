/**
 * Tests the service worker: the app starts while the gateway is unreachable, and is never outdated after an
 * upgrade.
 */
import { expect, test } from "vitest";
import { type App, browserSuite, PHONE, stopAfterTest } from "./parts/app.ts";
import { PrefixProxy } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";
import { nextVersion } from "./parts/upgrade.ts";
import { TestServer } from "./parts/server.ts";

const { open } = browserSuite();

/** Waits until the service worker has cached the whole app. */
async function waitForCache({ page }: App): Promise<void> {
  await until("the service worker is active", () =>
    page.evaluate(() => navigator.serviceWorker.controller?.state === "activated"),
  );
}

/** The names of the caches. `caches.open` would create a cache again if it was deleted meanwhile. */
function cacheNames({ page }: App): Promise<string[]> {
  return page.evaluate(() => caches.keys());
}

/** The app's scripts in the only cache. */
async function cachedScripts(app: App): Promise<string[]> {
  const names = await cacheNames(app);
  expect(names.length, names.join()).toBe(1);
  return app.page.evaluate(async (name) => {
    const cached = (await (await caches.open(name)).keys()).map(({ url }) => url);
    return cached.filter((url) => url.includes("/assets/index-") && url.endsWith(".js"));
  }, names[0]!);
}

const scriptOf = ({ page }: App) =>
  page.evaluate(() => document.querySelector<HTMLScriptElement>("script[type=module]")!.src);

test("R10, R54: the app starts while the gateway is unreachable, says so, and reconnects automatically", async () => {
  const own = stopAfterTest(await TestServer.start());
  const app = await open({ server: own, networkErrors: true, screen: PHONE });
  const id = await own.shell();
  await app.page.waitForSelector(`[data-session="${id}"]`);
  await waitForCache(app);
  await own.killGateway();
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("Cannot reach the gateway")');
  await own.startGateway();
  await app.page.waitForSelector(`[data-session="${id}"]`);
  await app.byTestId("board-state").waitFor({ state: "detached" });
  // The same for a session's page: the terminal's code is cached as well.
  await own.killGateway();
  await app.page.goto("about:blank");
  await app.page.goto(`${app.base}/#/s/${id}`);
  await app.page.waitForSelector('[data-testid="connection"]:has-text("Cannot reach the gateway")');
  await own.startGateway();
  await app.waitForState("open");
  await app.prints("ready>");
  await app.type("echo back $((6 * 7))\r");
  await app.prints("back 42");
});

test("R10, R54: without a login, the app does not show the login page while the gateway is unreachable", async () => {
  const own = stopAfterTest(await TestServer.start());
  const app = await open({ server: own, networkErrors: true });
  await waitForCache(app);
  await app.page.evaluate(() => localStorage.clear());
  await app.context.clearCookies();
  await own.killGateway();
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("Cannot reach the gateway")');
  await own.startGateway();
  await app.page.waitForSelector("text=Log in to");
  expect(await app.byTestId("login-problem").textContent()).toBe("");
});

test("R50, R54: the app starts while a proxy reports that the gateway is unreachable", async () => {
  const own = stopAfterTest(await TestServer.start("--base-path", "/terminals"));
  const proxy = stopAfterTest(await PrefixProxy.to(own.url, "/terminals"));
  const app = await open({ server: own, base: proxy.url, networkErrors: true });
  await waitForCache(app);
  await own.killGateway();
  expect((await fetch(`${proxy.url}/`)).status).toBe(502);
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("Cannot reach the gateway")');
  await own.startGateway();
  await app.byTestId("board-state").waitFor({ state: "detached" });
});

test("R54: after an upgrade the next load is the new app, and the old one is removed from the cache", async () => {
  const own = stopAfterTest(await TestServer.start());
  const proxy = stopAfterTest(await PrefixProxy.to(own.url, ""));
  const app = await open({ server: own, base: proxy.url, networkErrors: true });
  await waitForCache(app);
  // Later, because a worker that becomes active does not control a page that is being loaded just then.
  const otherTab = await open({ server: own, base: proxy.url, networkErrors: true, sharing: app });
  await waitForCache(otherTab);
  const before = await scriptOf(app);
  expect(await cachedScripts(app)).toEqual([before]);
  (await nextVersion(proxy))();
  // The first load after the upgrade, still with the old worker.
  await app.page.reload();
  await app.page.waitForSelector("text=New session");
  const after = await scriptOf(app);
  expect(after).toContain("/assets/index-next-");
  const names = () => cacheNames(app).then((names) => names.join());
  await until("only the new version is cached", async () => (await names()) === "bowline / next", names);
  expect(await cachedScripts(app)).toEqual([after]);
  // A page that was open during the upgrade offers a reload.
  await otherTab.page.click('[data-testid="notice"]:has-text("Bowline was updated") button:has-text("Reload")');
  await until("the new version of the app", async () => (await scriptOf(otherTab).catch(() => "")) === after);
  expect(await app.byTestId("notice").count()).toBe(0);
  // The new version starts without a gateway.
  await own.killGateway();
  proxy.override = () => ({ status: 502, headers: {}, body: "bad gateway" });
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("Cannot reach the gateway")');
  expect(await scriptOf(app)).toBe(after);
});

test("R54: an open page finds the upgrade when the gateway is reachable again", async () => {
  const own = stopAfterTest(await TestServer.start());
  const proxy = stopAfterTest(await PrefixProxy.to(own.url, ""));
  const app = await open({ server: own, base: proxy.url, networkErrors: true });
  await waitForCache(app);
  const upgrade = await nextVersion(proxy);
  await own.killGateway();
  await app.page.waitForSelector('[data-testid="board-state"]');
  upgrade();
  await own.startGateway();
  await app.page.waitForSelector('[data-testid="notice"]:has-text("Bowline was updated")');
});
