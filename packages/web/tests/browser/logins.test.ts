/** Tests logins through a proxy or another tab. */
import { expect, test } from "vitest";
import { browserSuite, stopAfterTest } from "./parts/app.ts";
import { PrefixProxy, Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";
import { TestServer } from "./parts/server.ts";

const { server, open, blank } = browserSuite();

/** Starts a gateway behind a proxy that authenticates users. */
async function startProxied(): Promise<{ own: TestServer; proxy: PrefixProxy }> {
  const names = ["--forward-auth-header", "X-Forwarded-User", "--forward-auth-user", "ann"];
  const own = stopAfterTest(await TestServer.start("--base-path", "/terminals", "--proxy", "127.0.0.1/32", ...names));
  return { own, proxy: stopAfterTest(await PrefixProxy.to(own.url, "/terminals", { "X-Forwarded-User": "ann" })) };
}

test("R50: behind a proxy that authenticates, a used login link still opens the app", async () => {
  const { own, proxy } = await startProxied();
  const { page, base } = await blank({ server: own, base: proxy.url, networkErrors: true });
  await page.goto(`${base}/#login=used`);
  await page.waitForSelector("text=No sessions yet");
});

test("R10, R50: behind a proxy that authenticates, an unreachable gateway does not lead to the login page", async () => {
  const { own, proxy } = await startProxied();
  const { page, base } = await blank({ server: own, base: proxy.url, networkErrors: true });
  await page.goto(`${base}/`);
  await page.waitForSelector("text=No sessions yet");
  expect(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("bowline.key")))).toEqual(
    [],
  );
  await until("the service worker is active", () =>
    page.evaluate(() => navigator.serviceWorker.controller?.state === "activated"),
  );
  const id = await own.shell();
  await page.waitForSelector(`[data-session="${id}"]`);
  await own.killGateway();
  expect((await fetch(`${proxy.url}/v1/sessions`)).status).toBe(502);
  await page.reload();
  await page.waitForSelector('[data-testid="board-state"]:has-text("Cannot reach the gateway")');
  await own.startGateway();
  await page.waitForSelector(`[data-session="${id}"]`);
});

/** An init script that hides the `storage` events of other tabs. */
function ignoreStorageEvents(): void {
  addEventListener("storage", (event) => event.stopImmediatePropagation(), true);
}

test.each([
  ["is notified", {}],
  ["is not notified", { initScript: ignoreStorageEvents }],
])("R10: after a login in another tab, this tab uses it if it %s", async (_, options) => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const first = await open({ base: wire.url, networkErrors: true, ...options });
  const id = await server.shell();
  await first.visit(id);
  await first.prints("ready>");
  const second = await open({ base: wire.url, networkErrors: true, sharing: first });
  // Close it, since it may still load parts of the app.
  await second.page.close();
  wire.refusing = true;
  wire.cut();
  // A key that is sent on the old connection may be lost. To the session, a new login is another client, so this page would ask.
  await first.waitForState("reconnecting");
  await first.type("echo still $((4 * 4))\r");
  wire.refusing = false;
  await first.prints("still 16");
  expect(await first.page.locator("text=Log in to").count()).toBe(0);
  await first.page.click('[aria-label="Back to the board"]');
  await first.page.waitForSelector(`[data-session="${id}"]`);
  await first.byTestId("board-state").waitFor({ state: "detached" });
});
