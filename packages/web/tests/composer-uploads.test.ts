/** The files of a message: the limits, their names, and uploads that fail, end late or are repeated. */
import { ApiError, type UploadReply } from "@bowline/client";
import { describe, expect, test } from "vitest";
import {
  admit,
  failureOf,
  filesProblem,
  isPreviewed,
  MAX_FILE,
  MAX_FILES,
  MAX_UPLOADS,
  sizeText,
  uploadName,
  uploadText,
} from "../src/conversation/composer/upload.ts";
import { Uploads } from "../src/conversation/composer/uploads.svelte.ts";

const local = (name: string, size: number) => ({ name, size });

describe("the limits", () => {
  test("each file has 10 MiB at most, all of a message 20 MiB", () => {
    const { admitted, problems } = admit([], [local("a", MAX_FILE), local("b", MAX_FILE + 1), local("c", MAX_FILE)]);
    expect(admitted.map(({ name }) => name)).toEqual(["a", "c"]);
    expect(problems).toEqual(["“b” is too large. The limit is 10 MiB."]);
    expect(admit([{ bytes: 2 * MAX_FILE }], [local("d", 1)]).problems).toEqual([
      "“d” was not added: the files of a message can have 20 MiB together.",
    ]);
  });

  test("a message has 16 files at most, and none is empty", () => {
    const files = Array.from({ length: MAX_FILES + 3 }, (_, i) => local(`f${i}`, 1));
    const { admitted, problems } = admit([{ bytes: 1 }], files);
    expect(admitted).toHaveLength(MAX_FILES - 1);
    expect(problems).toEqual(["A message can have 16 files at most."]);
    expect(admit([], [local("e", 0)])).toEqual({ admitted: [], problems: ["“e” is empty."] });
  });

  test("names are what the server takes", () => {
    expect(uploadName("Screenshot 1 ü.png")).toBe("Screenshot 1 ü.png");
    expect(uploadName("a/b\u0000\nc.txt")).toBe("a-b--c.txt");
    expect(uploadName(" ")).toBe("file");
    expect(encodeURIComponent(uploadName("half \ud800.txt"))).toBe("half%20-.txt");
    const long = uploadName(`${"ü".repeat(300)}.jpeg`);
    expect(new TextEncoder().encode(long).length).toBeLessThanOrEqual(255);
    expect(long.endsWith("ü.jpeg")).toBe(true);
  });

  test("sizes and previews", () => {
    expect([0, 999, 1000, 48_211, 3 << 20, 3.55 * (1 << 20)].map(sizeText)).toEqual([
      "0 B",
      "999 B",
      "1 KiB",
      "48 KiB",
      "3 MiB",
      "3.5 MiB",
    ]);
    expect(["image/png", "image/svg+xml", "text/html", ""].map((type) => isPreviewed({ type }))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

test("a failure says what to do", () => {
  const refused = (status: number, code: string) => new ApiError(status, code, "said", { fromGateway: true });
  expect(failureOf(refused(415, "bad_type"), "said")).toMatchObject({
    problem: "Only images, PDFs and texts can be attached",
    again: false,
  });
  expect(failureOf(refused(413, "too_large"), "said")).toMatchObject({ problem: "Larger than 10 MiB", again: false });
  expect(failureOf(refused(507, "no_space"), "said")).toMatchObject({ again: true });
  expect(failureOf(refused(503, "unreachable"), "said")).toMatchObject({ problem: "said", again: true });
  expect(failureOf(new ApiError(0, "unreachable", "TypeError"), "TypeError")).toMatchObject({
    problem: "Not uploaded: no answer from the server",
    again: true,
  });
});

/** Uploads whose requests the test answers. */
function start() {
  const requests: { name: string; answer: (id: string) => void; fail: (error: Error) => void }[] = [];
  let changes = 0;
  const uploads = new Uploads({
    upload: (name) =>
      new Promise<UploadReply>((resolve, fail) => {
        const answer = (id: string) => resolve({ id, name, type: "text/plain", bytes: 1 });
        requests.push({ name, answer, fail });
      }),
    explain: (error) => (error as Error).message,
    changed: () => (changes += 1),
  });
  const states = () => uploads.list.map(({ name, state }) => `${name} ${state.name}`);
  return { uploads, requests, states, changes: () => changes };
}
const file = (name: string, content = "text") => new File([content], name);
/** Lets answered requests be handled. */
const settle = () => new Promise((done) => setTimeout(done));

describe("uploads", () => {
  test("a few are made at the same time, in their order", async () => {
    const { uploads, requests, states } = start();
    expect(uploads.add(["a", "b", "c", "d"].map((name) => file(name)))).toEqual([]);
    expect(requests.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(MAX_UPLOADS).toBe(2);
    requests[1]!.answer("id-b");
    await settle();
    expect(states()).toEqual(["a uploading", "b uploaded", "c uploading", "d waiting"]);
    requests[0]!.answer("id-a");
    requests[2]!.answer("id-c");
    await settle();
    requests[3]!.answer("id-d");
    await settle();
    expect(uploads.ids).toEqual(["id-a", "id-b", "id-c", "id-d"]);
    expect(uploads.isUploading).toBe(false);
  });

  test("a message waits for its files", async () => {
    const { uploads, requests } = start();
    uploads.add([file("a")]);
    expect(filesProblem(uploads.list)).toMatch(/still being uploaded/);
    requests[0]!.fail(new Error("no network"));
    await settle();
    expect(filesProblem(uploads.list)).toBe("“a” was not uploaded. Try again, or remove it.");
    expect(uploadText(uploads.list[0]!)).toBe("no network");
    uploads.retry(uploads.list[0]!.key);
    expect(filesProblem(uploads.list)).toMatch(/still being uploaded/);
    requests[1]!.answer("id");
    await settle();
    expect(filesProblem(uploads.list)).toBeUndefined();
  });

  test("what becomes of a file that was removed changes nothing", async () => {
    const { uploads, requests, states, changes } = start();
    uploads.add([file("a"), file("b"), file("c")]);
    uploads.remove(uploads.list[0]!.key);
    const before = changes();
    requests[0]!.answer("id-a");
    await settle();
    expect(states()).toEqual(["b uploading", "c uploading"]);
    expect(changes()).toBe(before);
    uploads.clear();
    requests[1]!.fail(new Error("late"));
    await settle();
    expect(uploads.list).toEqual([]);
  });

  test("the same file is attached once", async () => {
    const { uploads, requests } = start();
    uploads.add([file("a"), file("a")]);
    requests[0]!.answer("same");
    requests[1]!.answer("same");
    await settle();
    expect(uploads.list).toHaveLength(1);
    uploads.put([
      { id: "same", name: "a", bytes: 0 },
      { id: "other", name: "b", bytes: 0 },
    ]);
    expect(uploads.ids).toEqual(["same", "other"]);
    expect(uploads.list.map(uploadText)).toEqual(["4 B", "Attached"]);
  });
});
