/** Looks up files of a project while the user types: not for every key, and never with an answer that came too late. */
import type { FileEntry, FileList } from "@bowline/client";

/** Milliseconds without a key before a request is made. The first one of a word is made at once. */
const DELAY = 120;
/** Milliseconds after which a request is given up. */
const TIMEOUT = 5000;

export interface FileResults {
  readonly files: readonly FileEntry[];
  /** There are more than are shown. */
  readonly truncated: boolean;
  readonly loading: boolean;
  /** Why the last request failed; empty if it did not. */
  readonly problem: string;
}

export const NO_FILES: FileResults = { files: [], truncated: false, loading: false, problem: "" };

export interface FileLookupOptions {
  readonly list: (query: string, signal: AbortSignal) => Promise<FileList>;
  readonly show: (results: FileResults) => void;
  /** An error in words. */
  readonly explain: (error: unknown) => string;
}

export class FileLookup {
  readonly #options: FileLookupOptions;
  #query: string | undefined;
  #results = NO_FILES;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #request: AbortController | undefined;

  constructor(options: FileLookupOptions) {
    this.#options = options;
  }

  /** Searches, unless this was searched for last. What was found before stays until the answer comes. */
  search(query: string): void {
    if (query === this.#query) return;
    const isFirst = this.#query === undefined;
    this.#cancel();
    this.#query = query;
    this.#show({ ...this.#results, loading: true, problem: "" });
    this.#timer = setTimeout(() => void this.#fetch(query), isFirst ? 0 : DELAY);
  }

  /** Forgets the results. */
  stop(): void {
    if (this.#query === undefined) return;
    this.#cancel();
    this.#query = undefined;
    this.#show(NO_FILES);
  }

  async #fetch(query: string): Promise<void> {
    const request = new AbortController();
    this.#request = request;
    let late = false;
    this.#timer = setTimeout(() => {
      late = true;
      request.abort();
    }, TIMEOUT);
    let results: FileResults;
    try {
      const { files, truncated } = await this.#options.list(query, request.signal);
      results = { files, truncated, loading: false, problem: "" };
    } catch (error) {
      if (this.#request !== request) return;
      const why = late ? `no answer within ${TIMEOUT / 1000} s` : this.#options.explain(error);
      results = { ...NO_FILES, problem: `Cannot list files: ${why}` };
    }
    if (this.#request !== request) return;
    this.#cancel();
    this.#show(results);
  }

  /** After this, the answer to a request is ignored. */
  #cancel(): void {
    clearTimeout(this.#timer);
    this.#request?.abort();
    this.#request = undefined;
  }

  #show(results: FileResults): void {
    this.#results = results;
    this.#options.show(results);
  }
}
