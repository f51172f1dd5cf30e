/** Uploads the files of a message while the message is being written. */
import type { UploadReply } from "@bowline/client";
import type { DraftFile } from "./draft.ts";
import { admit, failureOf, keptFiles, MAX_UPLOADS, type Upload, uploadName, type UploadState } from "./upload.ts";

export interface UploadsOptions {
  readonly upload: (name: string, file: File) => Promise<UploadReply>;
  /** An error in words. */
  readonly explain: (error: unknown) => string;
  /** The files that are kept over a reload have changed. */
  readonly changed: () => void;
}

/** The number of the latest upload. */
let lastKey = 0;

export class Uploads {
  /** In the order in which they were added. */
  list: readonly Upload[] = $state.raw([]);
  readonly #options: UploadsOptions;
  /** Requests that have no answer yet, also for files that were removed. */
  #requests = 0;

  constructor(options: UploadsOptions) {
    this.#options = options;
  }

  /** The ids of what is on the server, each once. */
  get ids(): string[] {
    return [...new Set(keptFiles(this.list).map(({ id }) => id))];
  }

  get isUploading(): boolean {
    return this.list.some(({ state }) => state.name === "waiting" || state.name === "uploading");
  }

  /** Adds files and uploads them. Returns why some were not added. */
  add(files: readonly File[]): readonly string[] {
    const { admitted, problems } = admit(this.list, files);
    const added = admitted.map((file) => {
      const name = uploadName(file.name);
      return { key: ++lastKey, name, bytes: file.size, file, state: { name: "waiting" } } as const;
    });
    this.list = [...this.list, ...added];
    this.#start();
    return problems;
  }

  /** Adds files that are on the server, unless they are there already. */
  put(files: readonly DraftFile[]): void {
    const present = new Set(this.ids);
    const added = files
      .filter(({ id }) => !present.has(id))
      .map(({ id, name, bytes }): Upload => {
        return { key: ++lastKey, name, bytes, file: undefined, state: { name: "uploaded", id } };
      });
    this.list = [...this.list, ...added];
  }

  retry(key: number): void {
    this.#set(key, { name: "waiting" });
    this.#start();
  }

  remove(key: number): void {
    this.list = this.list.filter((upload) => upload.key !== key);
    this.#options.changed();
  }

  clear(): void {
    this.list = [];
  }

  #start(): void {
    for (const { key, name, file, state } of this.list) {
      if (this.#requests >= MAX_UPLOADS) return;
      if (state.name === "waiting" && file) void this.#upload(key, name, file);
    }
  }

  async #upload(key: number, name: string, file: File): Promise<void> {
    this.#requests += 1;
    this.#set(key, { name: "uploading" });
    try {
      const { id } = await this.#options.upload(name, file);
      this.#finish(key, id);
    } catch (error) {
      this.#set(key, failureOf(error, this.#options.explain(error)));
    } finally {
      this.#requests -= 1;
      this.#start();
    }
  }

  #finish(key: number, id: string): void {
    if (!this.list.some((upload) => upload.key === key)) return;
    // The same file under the same name has the same id.
    if (this.ids.includes(id)) this.list = this.list.filter((upload) => upload.key !== key);
    else this.#set(key, { name: "uploaded", id });
    this.#options.changed();
  }

  #set(key: number, state: UploadState): void {
    this.list = this.list.map((upload) => (upload.key === key ? { ...upload, state } : upload));
  }
}
