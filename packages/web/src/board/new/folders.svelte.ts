/** Goes through the server's folders. */
import type { FolderList } from "@bowline/client";

/** Lists the folders in one; in the first root if there is no path. */
export type ListFolders = (path: string | undefined, hidden: boolean) => Promise<FolderList>;

export class FolderBrowser {
  /** The open folder; undefined until the first answer. It stays while another one is requested. */
  list: FolderList | undefined = $state.raw();
  /** Why the last folder could not be listed; empty if it could. */
  problem = $state("");
  loading = $state(false);
  /** Whether hidden folders are listed. */
  hidden = $state(false);
  /** The folder that was requested last. */
  #path: string | undefined;
  /** Counts requests: only the newest one counts. */
  #request = 0;
  readonly #fetch: ListFolders;
  readonly #explain: (error: unknown) => string;

  constructor(fetch: ListFolders, explain: (error: unknown) => string) {
    this.#fetch = fetch;
    this.#explain = explain;
  }

  /** The open folder, unless another one is requested: it is not clear then which of them is meant. */
  get usable(): FolderList | undefined {
    return this.loading ? undefined : this.list;
  }

  /** Opens a folder. If it is the first one and cannot be listed, the first root is listed in its place, with the problem. */
  async open(path: string | undefined): Promise<FolderList | undefined> {
    this.#path = path;
    const request = ++this.#request;
    this.loading = true;
    try {
      const list = await this.#fetch(path, this.hidden);
      if (request !== this.#request) return undefined;
      this.problem = "";
      return (this.list = list);
    } catch (error) {
      if (request !== this.#request) return undefined;
      this.problem = this.#explain(error);
      if (!this.list && path !== undefined) {
        const list = await this.#fetch(undefined, this.hidden).catch(() => undefined);
        if (request === this.#request) this.list = list;
      }
      return undefined;
    } finally {
      if (request === this.#request) this.loading = false;
    }
  }

  /** Requests the folder again that was requested last. */
  retry(): Promise<FolderList | undefined> {
    return this.open(this.#path);
  }

  /** Lists hidden folders, or leaves them out. */
  showHidden(hidden: boolean): void {
    this.hidden = hidden;
    void this.open(this.list?.path ?? this.#path);
  }
}
