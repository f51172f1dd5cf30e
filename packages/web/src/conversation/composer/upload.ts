/** The files of a message that is being written: the limits, and how far the upload of each has come. */
import { ApiError } from "@bowline/client";
import type { DraftFile } from "./draft.ts";

/** The largest file, in bytes. The server refuses a larger one. */
export const MAX_FILE = 10 << 20;
/** Bytes of all files of a prompt. The server refuses a prompt with more. */
export const MAX_FILES_TOTAL = 20 << 20;
/** Files of a prompt. The server refuses a prompt with more. */
export const MAX_FILES = 16;
/** Uploads at the same time: other requests need connections, too. */
export const MAX_UPLOADS = 2;
/** The longest name of a file, in bytes. */
const MAX_NAME = 255;

export type UploadState =
  | { readonly name: "waiting" | "uploading" }
  | { readonly name: "uploaded"; readonly id: string }
  | {
      readonly name: "failed";
      readonly problem: string;
      /** Whether another try may succeed. */
      readonly again: boolean;
    };

/** A file that goes with the next message. */
export interface Upload {
  /** Unique in this page. */
  readonly key: number;
  readonly name: string;
  /** 0 if that is not known. */
  readonly bytes: number;
  /** The file on this device; undefined after a reload. */
  readonly file: File | undefined;
  readonly state: UploadState;
}

/** A file in what the user has pasted, dropped or picked. */
type LocalFile = Pick<File, "name" | "size">;

/** Which of these files can be added to those that are there, and why the others cannot. */
export function admit<F extends LocalFile>(
  present: readonly Pick<Upload, "bytes">[],
  files: readonly F[],
): { readonly admitted: F[]; readonly problems: string[] } {
  const admitted: F[] = [];
  const problems: string[] = [];
  let count = present.length;
  let total = present.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const file of files) {
    const problem = problemOf(file, count, total);
    if (problem !== undefined) {
      if (!problems.includes(problem)) problems.push(problem);
      continue;
    }
    admitted.push(file);
    count += 1;
    total += file.size;
  }
  return { admitted, problems };
}

function problemOf({ name, size }: LocalFile, count: number, total: number): string | undefined {
  if (count >= MAX_FILES) return `A message can have ${MAX_FILES} files at most.`;
  if (size === 0) return `${quoted(name)} is empty.`;
  if (size > MAX_FILE) return `${quoted(name)} is too large. The limit is ${sizeText(MAX_FILE)}.`;
  if (total + size > MAX_FILES_TOTAL)
    return `${quoted(name)} was not added: the files of a message can have ${sizeText(MAX_FILES_TOTAL)} together.`;
  return undefined;
}

/** Why a message with these files cannot be sent yet; undefined if it can. */
export function filesProblem(uploads: readonly Upload[]): string | undefined {
  if (uploads.length > MAX_FILES) return `A message can have ${MAX_FILES} files at most. Remove some of them.`;
  const failed = uploads.find(({ state }) => state.name === "failed");
  if (failed) return `${quoted(failed.name)} was not uploaded. Try again, or remove it.`;
  if (uploads.some(({ state }) => state.name !== "uploaded"))
    return "Files are still being uploaded. Send when that is done, or remove them.";
  return undefined;
}

/** What is kept of the files over a reload: those that are on the server. */
export function keptFiles(uploads: readonly Upload[]): DraftFile[] {
  return uploads.flatMap(({ state, name, bytes }) =>
    state.name === "uploaded" ? [{ id: state.id, name, bytes }] : [],
  );
}

/** What became of an upload that failed. `message` is what the server or the browser said. */
export function failureOf(error: unknown, message: string): UploadState {
  const failed = (problem: string, again: boolean) => ({ name: "failed", problem, again }) as const;
  const code = error instanceof ApiError ? error.code : "";
  if (code === "bad_type") return failed("Only images, PDFs and texts can be attached", false);
  if (code === "too_large") return failed(`Larger than ${sizeText(MAX_FILE)}`, false);
  if (code === "no_space") return failed("The server has no room for it", true);
  if (error instanceof ApiError && error.status === 0) return failed("Not uploaded: no answer from the server", true);
  return failed(message || "Not uploaded", true);
}

/** A file's name as the server takes it: at most 255 bytes, with its ending, and without slashes, control and half characters. */
export function uploadName(name: string): string {
  const plain = name.replace(/[\u0000-\u001f\u007f-\u009f/]|\p{Surrogate}/gu, "-").trim() || "file";
  const ending = /\.[A-Za-z0-9]{1,12}$/.exec(plain)?.[0] ?? "";
  const characters = [...plain.slice(0, plain.length - ending.length)];
  const bytes = (text: string) => new TextEncoder().encode(text).length;
  let start = characters.slice(0, MAX_NAME);
  while (bytes(start.join("") + ending) > MAX_NAME) start = start.slice(0, -1);
  return start.join("") + ending;
}

/** A number of bytes, in words. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1 << 20) return `${Math.ceil(bytes / 1024)} KiB`;
  return `${(bytes / (1 << 20)).toFixed(1).replace(/\.0$/, "")} MiB`;
}

function quoted(name: string): string {
  return `“${name.slice(0, 80)}”`;
}

/** The types that phones offer to pick. Without HEIC among them, they convert their photos. */
export const PICKED_TYPES = "image/png,image/jpeg,image/gif,image/webp,application/pdf,text/*";

/** Whether a file is a picture that browsers show. */
export function isPreviewed({ type }: Pick<File, "type">): boolean {
  return /^image\/(png|jpeg|gif|webp)$/.test(type);
}

/** How far an upload has come, in words. */
export function uploadText({ state, bytes }: Pick<Upload, "state" | "bytes">): string {
  switch (state.name) {
    case "waiting":
      return "Waiting";
    case "uploading":
      return "Uploading…";
    case "uploaded":
      return bytes > 0 ? sizeText(bytes) : "Attached";
    case "failed":
      return state.problem;
  }
}
