/** Starts the gateway and the Chromium that most tests share. */
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { CHROMIUM, FLAGS } from "./chromium.ts";
import { type ServerAddress, TestServer } from "./server.ts";

declare module "vitest" {
  interface ProvidedContext {
    server: ServerAddress;
    browser: string;
  }
}

/** A host name other than localhost, for pages without a secure context. */
export const OTHER_NAME = "box.example";

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} does not exist; run \`make setup\` to install it`);
  const server = await TestServer.start("--host", OTHER_NAME);
  try {
    const page = await (await fetch(server.url)).text();
    if (!page.includes("assets/"))
      throw new Error("the bowline binary does not contain the web app; run `make browser-test` to build it");
    const browser = await chromium.launchServer({
      executablePath: CHROMIUM,
      args: [...FLAGS, `--host-resolver-rules=MAP ${OTHER_NAME} 127.0.0.1`],
      ignoreDefaultArgs: ["--disable-back-forward-cache"],
      handleSIGINT: false,
    });
    project.provide("server", { folder: server.folder, url: server.url });
    project.provide("browser", browser.wsEndpoint());
    return async () => {
      await browser.close();
      server.stop();
    };
  } catch (error) {
    server.stop();
    throw error;
  }
}
