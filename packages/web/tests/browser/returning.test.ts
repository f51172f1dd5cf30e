/** Tests that a page returns to the same session and size, even if its name or size changed meanwhile. */
import { expect, test } from "vitest";
import { type App, browserSuite, DESKTOP, PHONE, stopAfterTest } from "./parts/app.ts";
import { Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

test("R28: a page that was opened by name stays with its session when another session gets the name", async () => {
  const wire = stopAfterTest(await Wire.to(server.url));
  const app = await open({ base: wire.url, networkErrors: true });
  const id = await server.shell("build");
  await app.visit("build");
  await app.prints("ready>");
  await server.bowline("rename", "build", "before");
  const other = await server.shell("build");
  wire.cut();
  await app.type("echo same $((2 * 8))\r");
  await app.prints("same 16");
  expect(await server.screen(id)).toContain("same 16");
  expect(await server.screen(other)).not.toContain("same");
});

const CLAIM_BUTTON = 'button:has-text("Use my size")';

/** Chooses "Use my size", and waits until the page owns the size. */
async function claimSize(app: App): Promise<void> {
  await app.choose("Use my size");
  await app.page.locator(CLAIM_BUTTON).waitFor({ state: "detached" });
}

/** An init script for a device that always uses its own size. */
function alwaysUseMySize(): void {
  localStorage.setItem("bowline.settings", JSON.stringify({ useMySize: true }));
}

/** Waits until the terminal has the phone's size, which has fewer columns than any laptop's. */
async function waitForPhoneSize(laptop: App): Promise<void> {
  await until("the phone's size", async () => (await laptop.terminalState()).cols < 60);
}

async function waitForLaptopSize(laptop: App): Promise<void> {
  await until("the laptop's size", async () => (await laptop.terminalState()).cols > 100);
}

/** Opens a session on a laptop and, through its own proxy, on a phone that owns the size. */
async function phoneOwnsSize() {
  const wire = stopAfterTest(await Wire.to(server.url));
  const id = await server.shell();
  const laptop = await open({ screen: DESKTOP });
  await laptop.visit(id);
  const phone = await open({ screen: PHONE, base: wire.url, networkErrors: true, initScript: alwaysUseMySize });
  await phone.visit(id);
  await waitForPhoneSize(laptop);
  return { wire, laptop, phone };
}

test("R23: a device that uses its own size owns the size again if it lost it while it was disconnected", async () => {
  const { wire, laptop, phone } = await phoneOwnsSize();
  wire.refusing = true;
  wire.cut();
  await phone.waitForState("reconnecting");
  await claimSize(laptop);
  await waitForLaptopSize(laptop);
  wire.refusing = false;
  await phone.page.evaluate(() => void dispatchEvent(new Event("online")));
  await phone.waitForState("open");
  await waitForPhoneSize(laptop);
});

test("R23: a page that is shown with a dead connection claims the size after it reconnects", async () => {
  const { wire, laptop, phone } = await phoneOwnsSize();
  await claimSize(laptop);
  await phone.page.locator(CLAIM_BUTTON).waitFor();
  wire.stall();
  await phone.page.evaluate(() => void document.dispatchEvent(new Event("visibilitychange")));
  await waitForPhoneSize(laptop);
});

/** Makes the page believe that it is hidden or shown. */
function setVisibility({ page }: App, state: "visible" | "hidden"): Promise<void> {
  return page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

test("R47: a bell on a hidden page marks the page title until the page is shown", async () => {
  const app = await open();
  const id = await server.shell("ringing");
  await app.visit(id);
  await app.prints("ready>");
  const waitForTitle = (marked: boolean) =>
    until(
      `a page title ${marked ? "with" : "without"} a mark`,
      async () => (await app.page.title()).startsWith("● ") === marked,
      () => app.page.title(),
    );
  await setVisibility(app, "hidden");
  await server.bowline("send", id, "--enter", "printf '\\a'");
  await waitForTitle(true);
  await setVisibility(app, "visible");
  await waitForTitle(false);
  await setVisibility(app, "hidden");
  await server.bowline("send", id, "--enter", "echo la''ter");
  await app.prints("later");
  await waitForTitle(false);
});
