/** Finding a text in a conversation: all of it, however its history is cut into pages. */
import { expect, test } from "vitest";
import { find, type Found, MAX_FOUND, type ReadPage } from "../src/conversation/find.ts";

const AT = "2026-01-01T00:00:00Z";

/** Pages of at most `size` events. */
function pagesOf(events: readonly object[], size: number): ReadPage {
  const records = events.map((event, seq) => ({ seq, at: AT, event }));
  return async ({ before = records.length }) => {
    const start = Math.max(before - size, 0);
    return { start, events: records.slice(start, before), more: start > 0 };
  };
}

async function search(query: string, read: ReadPage): Promise<readonly Found[]> {
  let found: readonly Found[] = [];
  let done = false;
  await find(query, read, (progress) => ({ found, done } = progress), new AbortController().signal);
  expect(done).toBe(true);
  return found;
}

const text = (block: string, delta: string) => ({ type: "text", run: "r0", block, delta });
const conversation = [
  { type: "prompt", run: "r0", text: "Where is the Lighthouse?", attachments: [], command: "c", digest: "d", by: "me" },
  { type: "run_started", run: "r0", cause: "prompt" },
  text("m0", "On the li"),
  text("m0", "ght"),
  text("m0", "house rock."),
  {
    type: "tool_call",
    run: "r0",
    call: "t",
    kind: "execute",
    title: "ls",
    status: "pending",
    input: { command: "ls lighthouse" },
  },
  {
    type: "tool_update",
    run: "r0",
    call: "t",
    status: "completed",
    content: [{ type: "content", content: { text: "lamp" } }],
  },
  text("m1", "Done."),
];

test.each([1, 2, 3, 5, 100])("finds a text in pages of %i events, newest first", async (size) => {
  const found = await search("lighthouse", pagesOf(conversation, size));
  expect(new Set(found.map(({ key }) => key)).size).toBe(found.length);
  const kinds = found.map(({ key }) => key.split(" ")[0]);
  expect(kinds).toEqual(["tool", "text", "prompt"]);
});

test("finds what a tool has printed, and nothing where nothing is", async () => {
  expect(await search("LAMP", pagesOf(conversation, 100))).toMatchObject([{ key: "tool r0 t" }]);
  expect(await search("rotor", pagesOf(conversation, 2))).toEqual([]);
});

test("stops at the limit, without reading on", async () => {
  const many = Array.from({ length: MAX_FOUND * 3 }, (_, i) => text(`m${i}`, "again"));
  let pages = 0;
  const read = pagesOf(many, 100);
  const found = await search("again", (page, signal) => {
    pages += 1;
    return read(page, signal);
  });
  expect([found.length, pages]).toEqual([MAX_FOUND, 5]);
});

test("a page that cannot be read ends the search with its error", async () => {
  const failing: ReadPage = async () => Promise.reject(new Error("gone"));
  await expect(search("x", failing)).rejects.toThrow("gone");
});
