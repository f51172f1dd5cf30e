/** Completion of slash commands and files: where it begins, what it offers, and answers that come late. */
import type { FileList } from "@bowline/client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Completion } from "../src/conversation/composer/completion.svelte.ts";
import {
  commandSuggestions,
  fileSuggestions,
  insertionOf,
  isComplete,
  triggerAt,
} from "../src/conversation/composer/completion.ts";
import { FileLookup, type FileResults } from "../src/conversation/composer/files.ts";

/** The trigger in a text whose caret is at the bar. */
function at(marked: string) {
  return triggerAt(marked.replace("|", ""), marked.indexOf("|"));
}

const files = (...paths: string[]): FileList => ({
  files: paths.map((path) => ({ path, kind: path.endsWith("/") ? "folder" : "file" })),
  truncated: false,
});

describe("where completion begins", () => {
  test("a slash at the beginning begins a command", () => {
    expect(at("/|")).toEqual({ kind: "command", start: 0, end: 1, query: "" });
    expect(at("/com|pact now")).toEqual({ kind: "command", start: 0, end: 8, query: "com" });
    for (const none of ["|/compact", "/compact |", "a /com|", "\n/com|", "and/or|"]) expect(at(none)).toBeUndefined();
  });

  test("an at sign at the beginning of a word begins a file", () => {
    expect(at("@|")).toEqual({ kind: "file", start: 0, end: 1, query: "" });
    expect(at("see @src/ma|in.rs, please")).toEqual({ kind: "file", start: 4, end: 16, query: "src/ma" });
    expect(at("line\n(@a|)")).toEqual({ kind: "file", start: 6, end: 8, query: "a" });
    for (const none of ["me@host|", "@a b|", "|@a", "a@|"]) expect(at(none)).toBeUndefined();
    expect(triggerAt(`${"x".repeat(500_000)} @end`, 500_005)?.query).toBe("end");
    expect(triggerAt(`@${"x".repeat(1000)}`, 1001)).toBeUndefined();
  });
});

describe("what is offered and inserted", () => {
  const commands = [
    { name: "recompute", description: "Again" },
    { name: "compact", description: "Summarize", hint: "what to keep" },
    { name: "Commit" },
    { name: "compact", description: "a repeat" },
    { name: "bad\nname" },
  ];

  test("commands that begin with the query come first", () => {
    expect(commandSuggestions(commands, "com").map(({ label }) => label)).toEqual([
      "/compact",
      "/Commit",
      "/recompute",
    ]);
    expect(commandSuggestions(commands, "").map(({ label }) => label)).not.toContain("/bad\nname");
    expect(commandSuggestions(commands, "xyz")).toEqual([]);
    expect(commandSuggestions(commands, "compa")[0]).toMatchObject({ hint: "what to keep", folder: false });
  });

  test("names that would change the text around them are left out", () => {
    const listed = files("a.rs", "evil\nrm -rf", "bidi\u202egnp.exe", "", "ü ß.md").files;
    expect(fileSuggestions(listed).map(({ label }) => label)).toEqual(["@a.rs", "@ü ß.md"]);
  });

  test("a file replaces its word, and a space follows once", () => {
    const insert = (marked: string, path: string, kind: "file" | "folder" = "file") => {
      const text = marked.replace("|", "");
      const [suggestion] = fileSuggestions([{ path, kind }]);
      const { start, end, insert } = insertionOf(text, at(marked)!, suggestion!);
      return `${text.slice(0, start)}${insert}|${text.slice(end)}`;
    };
    expect(insert("see @ma|", "src/main.rs")).toBe("see @src/main.rs |");
    expect(insert("see @ma|in now", "src/main.rs")).toBe("see @src/main.rs |now");
    expect(insert("(@ma|)", "src/main.rs")).toBe("(@src/main.rs |)");
    expect(insert("@s|", "src", "folder")).toBe("@src/|");
  });

  test("a word that is complete is not completed again", () => {
    const [compact] = commandSuggestions([{ name: "compact" }], "");
    expect(isComplete("/compact", at("/compact|")!, compact!)).toBe(true);
    expect(isComplete("/compac", at("/compac|")!, compact!)).toBe(false);
    const [folder] = fileSuggestions([{ path: "src", kind: "folder" }]);
    expect(isComplete("@src/", at("@src/|")!, folder!)).toBe(false);
  });
});

/** Requests that the test answers. */
class Requests {
  readonly made: {
    query: string;
    signal: AbortSignal;
    answer: (list: FileList) => void;
    fail: (error: Error) => void;
  }[] = [];
  readonly list = (query: string, signal: AbortSignal) =>
    new Promise<FileList>((answer, fail) => {
      signal.addEventListener("abort", () => fail(new Error("aborted")));
      this.made.push({ query, signal, answer, fail });
    });
  get queries() {
    return this.made.map(({ query }) => query);
  }
}

describe("the lookup of files", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function lookup() {
    const requests = new Requests();
    const shown: FileResults[] = [];
    const explain = (error: unknown) => (error as Error).message;
    const lookup = new FileLookup({ list: requests.list, show: (results) => shown.push(results), explain });
    return { lookup, requests, shown, last: () => shown.at(-1)! };
  }

  test("the first request is made at once, others when the user pauses", async () => {
    const { lookup: files, requests } = lookup();
    files.search("");
    await vi.advanceTimersByTimeAsync(0);
    for (const query of ["m", "ma", "mai"]) {
      files.search(query);
      await vi.advanceTimersByTimeAsync(50);
    }
    await vi.advanceTimersByTimeAsync(200);
    files.search("mai");
    await vi.advanceTimersByTimeAsync(200);
    expect(requests.queries).toEqual(["", "mai"]);
  });

  test("a late answer to an earlier request changes nothing", async () => {
    const { lookup: search, requests, last } = lookup();
    search.search("a");
    await vi.advanceTimersByTimeAsync(0);
    search.search("ab");
    await vi.advanceTimersByTimeAsync(200);
    requests.made[1]!.answer(files("ab.rs"));
    await vi.advanceTimersByTimeAsync(0);
    requests.made[0]!.answer(files("a.rs"));
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toEqual({ ...files("ab.rs"), loading: false, problem: "" });
    expect(requests.made[0]!.signal.aborted).toBe(true);
  });

  test("earlier results stay until the next ones come, and nothing stays after the end", async () => {
    const { lookup: search, requests, last } = lookup();
    search.search("a");
    await vi.advanceTimersByTimeAsync(0);
    requests.made[0]!.answer(files("a.rs"));
    await vi.advanceTimersByTimeAsync(0);
    search.search("ab");
    expect(last()).toEqual({ ...files("a.rs"), loading: true, problem: "" });
    await vi.advanceTimersByTimeAsync(200);
    search.stop();
    requests.made[1]!.answer(files("ab.rs"));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(last()).toEqual({ files: [], truncated: false, loading: false, problem: "" });
  });

  test("a failure is shown, and so is a server that does not answer; the next search is tried", async () => {
    const { lookup: search, requests, last } = lookup();
    search.search("a");
    await vi.advanceTimersByTimeAsync(0);
    requests.made[0]!.fail(new Error("cannot reach Bowline"));
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toMatchObject({ loading: false, problem: "Cannot list files: cannot reach Bowline" });
    search.search("ab");
    expect(last()).toMatchObject({ loading: true, problem: "" });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(last()).toMatchObject({ loading: false, problem: "Cannot list files: no answer within 5 s" });
    search.search("abc");
    await vi.advanceTimersByTimeAsync(200);
    requests.made[2]!.answer(files("abc"));
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toMatchObject({ problem: "", files: [{ path: "abc" }] });
  });
});

describe("the list of suggestions", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function open() {
    const requests = new Requests();
    const commands = [{ name: "compact" }, { name: "clear" }];
    const completion = new Completion({ commands: () => commands, files: requests.list, explain: String });
    return { completion, requests, type: (marked: string) => type(completion, marked) };
  }
  function type(completion: Completion, marked: string) {
    completion.update(marked.replace("|", ""), marked.indexOf("|"));
  }

  test("arrows move around it, and choosing inserts", () => {
    const { completion, type } = open();
    type("/c|");
    expect(completion.isOpen).toBe(true);
    completion.move(-1);
    expect(completion.choose("/c")).toEqual({ start: 0, end: 2, insert: "/clear " });
    completion.move(1);
    expect(completion.choose("/c")).toEqual({ start: 0, end: 2, insert: "/compact " });
    expect(completion.choose("/c", 1)).toEqual({ start: 0, end: 2, insert: "/clear " });
    type("/xyz|");
    expect(completion.isOpen).toBe(false);
  });

  test("once closed, it stays closed for this word", () => {
    const { completion, type } = open();
    type("/c|");
    completion.close();
    type("/co|");
    expect(completion.isOpen).toBe(false);
    type("|");
    type("/c|");
    expect(completion.isOpen).toBe(true);
    completion.update("/c", undefined);
    expect(completion.isOpen, "the text field has lost the focus").toBe(false);
  });

  test("files say what they wait for", async () => {
    const { completion, requests, type } = open();
    type("see @m|");
    expect([completion.isOpen, completion.isWaiting, completion.note]).toEqual([true, true, "Searching files…"]);
    await vi.advanceTimersByTimeAsync(0);
    requests.made[0]!.answer({ ...files("main.rs", "mod.rs"), truncated: true });
    await vi.advanceTimersByTimeAsync(0);
    expect(completion.isWaiting).toBe(false);
    expect(completion.note).toBe("There are more. Type more of the name.");
    completion.move(1);
    expect(completion.choose("see @m")?.insert).toBe("@mod.rs ");
    type("see @mxy|");
    await vi.advanceTimersByTimeAsync(200);
    requests.made[1]!.answer(files());
    await vi.advanceTimersByTimeAsync(0);
    expect([completion.note, completion.selected]).toEqual(["No file matches", -1]);
    expect(completion.choose("see @mxy")).toBeUndefined();
  });
});
