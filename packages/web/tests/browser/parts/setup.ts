/** Starts what most tests share, once: a gateway and a Chromium. */
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { CHROMIUM, FLAGS } from "./chromium.ts";
import { type Place, World } from "./world.ts";

declare module "vitest" {
  interface ProvidedContext {
    world: Place;
    browser: string;
  }
}

/** A name that is not this machine's own, for a page without a secure context. */
export const OTHER_NAME = "box.example";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is not there: \`make setup\` installs it`);
  const world = await World.start("--host", OTHER_NAME);
  try {
    const page = await (await fetch(world.url)).text();
    if (!page.includes("assets/"))
      throw new Error("the web app is not inside the program: `make browser-test` builds it in");
    const browser = await chromium.launchServer({
      executablePath: CHROMIUM,
      args: [...FLAGS, `--host-resolver-rules=MAP ${OTHER_NAME} 127.0.0.1`],
      ignoreDefaultArgs: ["--disable-back-forward-cache"],
      handleSIGINT: false,
    });
    project.provide("world", { folder: world.folder, url: world.url });
    project.provide("browser", browser.wsEndpoint());
    return async () => {
      await browser.close();
      world.stop();
    };
  } catch (error) {
    world.stop();
    throw error;
  }
}
