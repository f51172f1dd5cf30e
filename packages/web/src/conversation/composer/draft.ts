/**
 * Keeps what is written but not sent over reloads: one key for each session, and one with the list of them, so that old drafts
 * make room for new ones. Tabs share the keys; the last one that writes wins.
 */
import type { Store } from "@bowline/client/browser";
import { storageKey } from "../../state/device.svelte.ts";

/** A file that was uploaded for a message that is not sent yet. */
export interface DraftFile {
  /** The id of the upload. */
  readonly id: string;
  readonly name: string;
  /** 0 if that is not known. */
  readonly bytes: number;
}

export interface Draft {
  readonly text: string;
  readonly files: readonly DraftFile[];
}

export const EMPTY_DRAFT: Draft = { text: "", files: [] };

/** Drafts that are kept; another one replaces the one that was changed longest ago. */
export const MAX_DRAFTS = 50;
/** Characters of a draft with its files; a longer one could not be sent, and is not kept over a reload. */
export const MAX_DRAFT = 256 << 10;
/** Characters of all drafts together; those that were changed longest ago make room. */
export const MAX_DRAFTS_TOTAL = 512 << 10;

/** A kept draft: its session, and the number of its characters. */
type Listed = readonly [session: string, characters: number];

export class DraftStore {
  readonly #store: Store;
  /** The path of the gateway: several may share an origin. */
  readonly #path: string;
  /** What this page last read or wrote, by session. */
  readonly #known = new Map<string, string | undefined>();

  constructor(store: Store, path: string) {
    this.#store = store;
    this.#path = path;
  }

  /** The draft of a session; an empty one if there is none, or it is damaged. */
  load(session: string): Draft {
    const stored = this.#store.get(this.#key(session));
    this.#known.set(session, stored);
    return parseDraft(stored);
  }

  /** Keeps a draft; an empty one is removed. */
  save(session: string, draft: Draft): void {
    if (draft.text === "" && draft.files.length === 0) return this.remove(session);
    const stored = JSON.stringify(draft);
    if (stored.length > MAX_DRAFT) return this.remove(session);
    const others = this.#listed().filter(([id]) => id !== session);
    const listed: Listed[] = [...others, [session, stored.length]];
    while (listed.length > MAX_DRAFTS || charactersOf(listed) > MAX_DRAFTS_TOTAL) {
      const [oldest] = listed.shift()!;
      this.#store.remove(this.#key(oldest));
    }
    this.#store.set(this.#listKey, JSON.stringify(listed));
    this.#store.set(this.#key(session), stored);
    this.#known.set(session, stored);
  }

  /** Removes the draft that this page knows. What another tab has written in the meantime stays. */
  remove(session: string): void {
    const key = this.#key(session);
    const stored = this.#store.get(key);
    if (stored === undefined || stored !== this.#known.get(session)) return;
    this.#store.remove(key);
    this.#known.delete(session);
    this.#store.set(this.#listKey, JSON.stringify(this.#listed().filter(([id]) => id !== session)));
  }

  get #listKey(): string {
    return storageKey("drafts", this.#path);
  }

  #key(session: string): string {
    return storageKey(`draft.${session}`, this.#path);
  }

  #listed(): Listed[] {
    const found = parseJson(this.#store.get(this.#listKey));
    if (!Array.isArray(found)) return [];
    return found.flatMap((entry: unknown) => {
      const [session, characters] = Array.isArray(entry) ? (entry as unknown[]) : [];
      return typeof session === "string" && typeof characters === "number" ? [[session, characters] as const] : [];
    });
  }
}

function charactersOf(listed: readonly Listed[]): number {
  return listed.reduce((sum, [, characters]) => sum + characters, 0);
}

function parseDraft(stored: string | undefined): Draft {
  const { text, files } = Object(parseJson(stored)) as { text?: unknown; files?: unknown };
  return {
    text: typeof text === "string" ? text : "",
    files: Array.isArray(files) ? files.flatMap(parseFile) : [],
  };
}

function parseFile(file: unknown): DraftFile[] {
  const { id, name, bytes } = Object(file) as { id?: unknown; name?: unknown; bytes?: unknown };
  if (typeof id !== "string" || typeof name !== "string") return [];
  return [{ id, name, bytes: typeof bytes === "number" ? bytes : 0 }];
}

function parseJson(stored: string | undefined): unknown {
  try {
    return stored === undefined ? undefined : JSON.parse(stored);
  } catch {
    return undefined;
  }
}
