/** The shell of the app, kept by the browser: it starts without a gateway, comes back with it, and is never an old one. */
import { expect, test } from "vitest";
import { type App, afterwards, PHONE, stage } from "./parts/app.ts";
import { PrefixProxy } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";
import { nextVersion } from "./parts/upgrade.ts";
import { World } from "./parts/world.ts";

const { open } = stage();

/** Waits until the browser keeps the whole app. */
async function kept({ page }: App): Promise<void> {
  await until("the worker keeps the app", () =>
    page.evaluate(() => navigator.serviceWorker.controller?.state === "activated"),
  );
}

/** The names of the worker's caches. Asking for a cache by name would create it again if it was deleted meanwhile. */
function cacheNames({ page }: App): Promise<string[]> {
  return page.evaluate(() => caches.keys());
}

/** The app's scripts in the worker's only cache. */
async function keptScripts(app: App): Promise<string[]> {
  const names = await cacheNames(app);
  expect(names.length, names.join()).toBe(1);
  return app.page.evaluate(async (name) => {
    const kept = (await (await caches.open(name)).keys()).map(({ url }) => url);
    return kept.filter((url) => url.includes("/assets/index-") && url.endsWith(".js"));
  }, names[0]!);
}

const scriptOf = ({ page }: App) =>
  page.evaluate(() => document.querySelector<HTMLScriptElement>("script[type=module]")!.src);

test("R10, R54: the app starts while the gateway is away, says so, and comes back by itself", async () => {
  const own = afterwards(await World.start());
  const app = await open({ of: own, rough: true, screen: PHONE });
  const id = await own.shell();
  await app.page.waitForSelector(`[data-session="${id}"]`);
  await kept(app);
  await own.killGateway();
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("The gateway cannot be reached")');
  await own.startGateway();
  await app.page.waitForSelector(`[data-session="${id}"]`);
  await app.part("board-state").waitFor({ state: "detached" });
  // The same at a session's place: its part of the app is kept as well.
  await own.killGateway();
  await app.page.goto("about:blank");
  await app.page.goto(`${app.base}/#/s/${id}`);
  await app.page.waitForSelector('[data-testid="connection"]:has-text("The gateway cannot be reached")');
  await own.startGateway();
  await app.state("open");
  await app.prints("ready>");
  await app.type("echo back $((6 * 7))\r");
  await app.prints("back 42");
});

test("R10, R54: a browser where nobody is logged in does not ask for a login that nobody could take", async () => {
  const own = afterwards(await World.start());
  const app = await open({ of: own, rough: true });
  await kept(app);
  await app.page.evaluate(() => localStorage.clear());
  await app.context.clearCookies();
  await own.killGateway();
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("The gateway cannot be reached")');
  await own.startGateway();
  await app.page.waitForSelector("text=Log in to");
  expect(await app.part("login-problem").textContent()).toBe("");
});

test("R50, R54: a proxy that answers for a gateway that is away does not hide the app", async () => {
  const own = afterwards(await World.start("--base-path", "/terminals"));
  const proxy = afterwards(await PrefixProxy.to(own.url, "/terminals"));
  const app = await open({ of: own, base: proxy.url, rough: true });
  await kept(app);
  await own.killGateway();
  expect((await fetch(`${proxy.url}/`)).status).toBe(502);
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("The gateway cannot be reached")');
  await own.startGateway();
  await app.part("board-state").waitFor({ state: "detached" });
});

test("R54: after an upgrade the next load is the new app, and nothing of the old one stays", async () => {
  const own = afterwards(await World.start());
  const proxy = afterwards(await PrefixProxy.to(own.url, ""));
  const app = await open({ of: own, base: proxy.url, rough: true });
  const beside = await open({ of: own, base: proxy.url, rough: true, beside: app });
  await kept(app);
  await kept(beside);
  const before = await scriptOf(app);
  expect(await keptScripts(app)).toEqual([before]);
  (await nextVersion(proxy))();
  // The very next load, still under the old worker.
  await app.page.reload();
  await app.page.waitForSelector("text=New session");
  const after = await scriptOf(app);
  expect(after).toContain("/assets/index-next-");
  const names = () => cacheNames(app).then((names) => names.join());
  await until("the new worker keeps the new app alone", async () => (await names()) === "bowline / next", names);
  expect(await keptScripts(app)).toEqual([after]);
  // A page that was open all along says that it is the old one.
  await beside.page.click('[data-testid="notice"]:has-text("Bowline was updated") button:has-text("Load the new one")');
  await until("the new app", async () => (await scriptOf(beside).catch(() => "")) === after);
  expect(await app.part("notice").count()).toBe(0);
  // And the new one is what starts without a gateway.
  await own.killGateway();
  proxy.instead = () => ({ status: 502, headers: {}, body: "the gateway is away" });
  await app.page.reload();
  await app.page.waitForSelector('[data-testid="board-state"]:has-text("The gateway cannot be reached")');
  expect(await scriptOf(app)).toBe(after);
});

test("R54: an open page finds the upgrade when the gateway comes back", async () => {
  const own = afterwards(await World.start());
  const proxy = afterwards(await PrefixProxy.to(own.url, ""));
  const app = await open({ of: own, base: proxy.url, rough: true });
  await kept(app);
  const upgrade = await nextVersion(proxy);
  await own.killGateway();
  await app.page.waitForSelector('[data-testid="board-state"]');
  upgrade();
  await own.startGateway();
  await app.page.waitForSelector('[data-testid="notice"]:has-text("Bowline was updated")');
});
