/** Hostile output of agents: nothing of it runs, and nothing is loaded from elsewhere. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { HOSTILE } from "../hostile.ts";
import { browserSuite } from "./parts/app.ts";
import { Conversation } from "./parts/conversation.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Notes in the page what must not happen. */
function watchForHarm(): void {
  const harm: string[] = [];
  Object.assign(window, { harm });
  document.addEventListener("securitypolicyviolation", (event) => {
    harm.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
  });
  for (const name of ["alert", "confirm", "prompt", "open", "pwned"] as const)
    Object.defineProperty(window, name, { value: () => void harm.push(`${name} was called`) });
}

/** A text as an argument of the fake agent's instructions. */
function escaped(text: string): string {
  const named: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\x1b": "\\e" };
  return text.replace(/[\\\p{Cc}\u2028\u2029]/gu, (char) => {
    return named[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** Groups of texts whose items are all in the page at a time, and that fit into a prompt. */
function batchesOf(texts: readonly string[]): string[][] {
  const batches: string[][] = [];
  let size = Infinity;
  for (const text of texts) {
    if (size + text.length > 100_000 || batches.at(-1)!.length >= 40) {
      batches.push([]);
      size = 0;
    }
    batches.at(-1)!.push(text);
    size += text.length;
  }
  return batches;
}

async function checkLinks(page: Page): Promise<void> {
  const links = await page
    .locator('[data-testid="transcript"] a[href]')
    .evaluateAll((links) =>
      links.map((link) => [(link as HTMLAnchorElement).protocol, (link as HTMLAnchorElement).rel] as const),
    );
  for (const [protocol, rel] of links) {
    expect(["http:", "https:", "mailto:"]).toContain(protocol);
    expect(rel).toContain("noopener");
  }
}

test("R52: hostile Markdown, links, HTML and escape sequences neither run nor load anything", async () => {
  const app = await open({ initScript: watchForHarm });
  const elsewhere: string[] = [];
  app.page.on("request", (request) => {
    if (!request.url().startsWith(app.base) && !request.url().startsWith("blob:")) elsewhere.push(request.url());
  });
  const id = await server.agent();
  const chat = await Conversation.visit(app, id);
  const batches = batchesOf(HOSTILE.map(({ markdown }) => escaped(markdown.slice(0, 20_000))));
  for (const [i, texts] of batches.entries()) {
    // A tool call between two texts keeps them apart.
    const lines = texts.flatMap((text) => [`say ${text}`, `tool ${text.slice(0, 2000)}`]);
    await chat.send([`think ${texts[0]}`, ...lines, `ask h ${texts[0]!.slice(0, 500)}`].join("\n"));
    await app.byTestId("approval").waitFor();
    await server.bowline("approve", `${id}/a${i}`);
    await until("the approval is closed", async () => (await app.byTestId("approval").count()) === 0);
    await chat.isReady();
    // Everything is opened.
    const folded = app.page.locator('[data-testid="transcript"] li button[aria-expanded="false"]');
    await folded.evaluateAll((buttons) => buttons.forEach((button) => (button as HTMLElement).click()));
    await app.waitForPaint();
    await checkLinks(app.page);
  }
  const harm = await app.page.evaluate(() => (window as unknown as { harm: string[] }).harm);
  expect(harm).toEqual([]);
  expect(elsewhere).toEqual([]);
  expect(
    await app.page.locator('[data-testid="transcript"] :is(img, script, iframe, style, form, object, embed)').count(),
  ).toBe(0);
  expect(await app.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
});
