/** Coming back to the same session with the same wishes, whatever happened to its name and its size meanwhile. */
import { expect, test } from "vitest";
import { type App, afterwards, DESKTOP, PHONE, stage } from "./parts/app.ts";
import { Wire } from "./parts/proxy.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();

test("R28: a page that was opened by a name stays with its session when the name goes to another", async () => {
  const wire = afterwards(await Wire.to(world.url));
  const app = await open({ base: wire.url, rough: true });
  const id = await world.shell("build");
  await app.visit("build");
  await app.prints("ready>");
  await world.bowline("rename", "build", "before");
  const other = await world.shell("build");
  wire.cut();
  await app.type("echo same $((2 * 8))\r");
  await app.prints("same 16");
  expect(await world.screen(id)).toContain("same 16");
  expect(await world.screen(other)).not.toContain("same");
});

const CLAIM = 'button:has-text("Use my size")';

/** Takes the size, and waits until the program has it. */
async function claim(app: App): Promise<void> {
  await app.choose("Use my size");
  await app.page.locator(CLAIM).waitFor({ state: "detached" });
}

/** A terminal that the phone's size rules has fewer columns than any laptop's. */
async function hasPhoneSize(laptop: App): Promise<void> {
  await until("the phone's size", async () => (await laptop.shown()).cols < 60);
}

async function hasOwnSize(laptop: App): Promise<void> {
  await until("the laptop's size", async () => (await laptop.shown()).cols > 100);
}

/** A laptop and a phone at one session, over a line of the phone's own; the phone has taken the size. */
async function phoneRules() {
  const wire = afterwards(await Wire.to(world.url));
  const id = await world.shell();
  const laptop = await open({ screen: DESKTOP });
  await laptop.visit(id);
  const phone = await open({ screen: PHONE, base: wire.url, rough: true });
  await phone.visit(id);
  await claim(phone);
  await hasPhoneSize(laptop);
  return { wire, laptop, phone };
}

test("R23: a device whose size is to rule has it again when it lost it while it was away", async () => {
  const { wire, laptop, phone } = await phoneRules();
  wire.refusing = true;
  wire.cut();
  await phone.state("reconnecting");
  await claim(laptop);
  await hasOwnSize(laptop);
  wire.refusing = false;
  await phone.page.evaluate(() => void dispatchEvent(new Event("online")));
  await phone.state("open");
  await hasPhoneSize(laptop);
});

test("R23: a page that is shown over a dead line says that its size is to rule once it is back", async () => {
  const { wire, laptop, phone } = await phoneRules();
  await claim(laptop);
  await phone.page.locator(CLAIM).waitFor();
  wire.hold();
  await phone.page.evaluate(() => void document.dispatchEvent(new Event("visibilitychange")));
  await hasPhoneSize(laptop);
});

/** Hides a page, or shows it, as far as the page can tell. */
function show({ page }: App, state: "visible" | "hidden"): Promise<void> {
  return page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

test("R47: a bell that nobody saw is in the page's title until somebody looks, and not again", async () => {
  const app = await open();
  const id = await world.shell("ringing");
  await app.visit(id);
  await app.prints("ready>");
  const title = (marked: boolean) =>
    until(
      `a title that is ${marked ? "" : "not "}marked`,
      async () => (await app.page.title()).startsWith("● ") === marked,
      () => app.page.title(),
    );
  await show(app, "hidden");
  await world.bowline("send", id, "--enter", "printf '\\a'");
  await title(true);
  await show(app, "visible");
  await title(false);
  await show(app, "hidden");
  await world.bowline("send", id, "--enter", "echo la''ter");
  await app.prints("later");
  await title(false);
});
