/** Logins that others take care of: a proxy, or another tab. */
import { expect, test } from "vitest";
import { afterwards, stage } from "./parts/app.ts";
import { PrefixProxy, Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";
import { World } from "./parts/world.ts";

const { world, open, blank } = stage();

/** A gateway behind a proxy that says who somebody is. */
async function proxied(): Promise<{ own: World; proxy: PrefixProxy }> {
  const names = ["--forward-auth-header", "X-Forwarded-User", "--forward-auth-user", "ann"];
  const own = afterwards(await World.start("--base-path", "/terminals", "--proxy", "127.0.0.1/32", ...names));
  return { own, proxy: afterwards(await PrefixProxy.to(own.url, "/terminals", { "X-Forwarded-User": "ann" })) };
}

test("R50: behind a proxy that logs in, a link that was used already leads in all the same", async () => {
  const { own, proxy } = await proxied();
  const { page, base } = await blank({ of: own, base: proxy.url, rough: true });
  await page.goto(`${base}/#login=used`);
  await page.waitForSelector("text=No sessions yet");
});

test("R10, R50: behind a proxy that logs in, a gateway that is away is no reason to ask for a login", async () => {
  const { own, proxy } = await proxied();
  const { page, base } = await blank({ of: own, base: proxy.url, rough: true });
  await page.goto(`${base}/`);
  await page.waitForSelector("text=No sessions yet");
  expect(await page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("bowline.key")))).toEqual(
    [],
  );
  await until("the worker keeps the app", () =>
    page.evaluate(() => navigator.serviceWorker.controller?.state === "activated"),
  );
  const id = await own.shell();
  await page.waitForSelector(`[data-session="${id}"]`);
  await own.killGateway();
  expect((await fetch(`${proxy.url}/v1/sessions`)).status).toBe(502);
  await page.reload();
  await page.waitForSelector('[data-testid="board-state"]:has-text("The gateway cannot be reached")');
  await own.startGateway();
  await page.waitForSelector(`[data-session="${id}"]`);
});

/** Runs in a page before anything else: it hears of nothing that other tabs keep. */
function deafen(): void {
  addEventListener("storage", (event) => event.stopImmediatePropagation(), true);
}

test.each([
  ["hears of it", {}],
  ["slept through it", { before: deafen }],
])("R10: after a login in another tab, this one goes on with it if it %s", async (_, opening) => {
  const wire = afterwards(await Wire.to(world.url));
  const first = await open({ base: wire.url, rough: true, ...opening });
  const id = await world.shell();
  await first.visit(id);
  await first.prints("ready>");
  const second = await open({ base: wire.url, rough: true, beside: first });
  // Parts of the app may still be on their way to it.
  await second.page.close();
  wire.cut();
  await first.type("echo still $((4 * 4))\r");
  await first.prints("still 16");
  expect(await first.page.locator("text=Log in to").count()).toBe(0);
  await first.page.click('[aria-label="Back to the board"]');
  await first.page.waitForSelector(`[data-session="${id}"]`);
  await first.part("board-state").waitFor({ state: "detached" });
});
