/**
 * Finds a text in a whole conversation, also in the part that is not loaded: pages of history are read from the newest to the
 * oldest, and what they show is searched. A plain module.
 */
import { type AgentRecord, readRecord } from "@bowline/client";
import { visibleText } from "./searchable.ts";
import { type Item, Transcript } from "./transcript.ts";

/** Events of a page. */
const PAGE = 1000;
/** More places than this are not listed. */
export const MAX_FOUND = 500;

/** An item that contains the text. */
export interface Found {
  /** The key of the item. */
  readonly key: string;
  /** The number of the event that it begins with. */
  readonly seq: number;
}

/** Reads a page of history. */
export type ReadPage = (
  page: { before?: number; limit: number },
  signal: AbortSignal,
) => Promise<{
  readonly start: number;
  readonly events: readonly {
    readonly seq: number;
    readonly from?: number;
    readonly at: string;
    readonly event: unknown;
  }[];
  readonly more: boolean;
}>;

/** What is known after a page: all places so far, newest first. */
export interface Progress {
  readonly found: readonly Found[];
  /** Everything was searched, or more places than `MAX_FOUND` were found. */
  readonly done: boolean;
}

/** Searches the conversation, and reports after each page. Rejects if a page cannot be read, or `signal` aborts. */
export async function find(
  query: string,
  read: ReadPage,
  report: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<void> {
  const found: Found[] = [];
  const keys = new Set<string>();
  /** The beginning of a text that an older page may begin. */
  let cut: { readonly key: string; readonly text: string } | undefined;
  let before: number | undefined;
  for (;;) {
    const page = await read({ limit: PAGE, ...(before === undefined ? {} : { before }) }, signal);
    const records = page.events.map(readRecord);
    const items = itemsOf(records, before !== undefined);
    const newer = cut;
    const textOf = (item: Item) => visibleText(item) + (newer?.key === item.key ? newer.text : "");
    for (const item of [...items].reverse()) {
      const whole = textOf(item);
      if (!keys.has(item.key) && matches(whole, query)) {
        keys.add(item.key);
        found.push({ key: item.key, seq: item.seq });
      }
    }
    // The page's first text may be the rest of one that the older page begins.
    const first = items.find(({ kind }) => kind === "text" || kind === "thinking");
    cut = first && { key: first.key, text: textOf(first).slice(0, query.length) };
    const done = !page.more || page.events.length === 0 || found.length >= MAX_FOUND;
    report({ found: found.slice(0, MAX_FOUND), done });
    if (done) return;
    before = page.start;
  }
}

/** Whether a text contains another, whatever the case. */
export function matches(text: string, query: string): boolean {
  return text.toLowerCase().includes(query.toLowerCase());
}

/** All items that these records lead to, in the order of reading. The runs of an older page's last prompts begin in a newer one. */
function itemsOf(records: readonly AgentRecord[], older: boolean): Item[] {
  const transcript = new Transcript();
  transcript.reset(records);
  return [...flat(transcript.items), ...(older ? transcript.waiting : [])];
}

function flat(items: readonly Item[]): Item[] {
  return items.flatMap((item) => (item.kind === "tool" ? [item, ...flat(item.children)] : [item]));
}
