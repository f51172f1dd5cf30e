/** What the user writes: drafts that outlive a reload, the Enter key, and earlier prompts. */
import type { Store } from "@bowline/client/browser";
import { openStore } from "@bowline/client/browser";
import { describe, expect, test } from "vitest";
import {
  DraftStore,
  EMPTY_DRAFT,
  MAX_DRAFT,
  MAX_DRAFTS,
  MAX_DRAFTS_TOTAL,
} from "../src/conversation/composer/draft.ts";
import { earlierPrompts, PromptHistory } from "../src/conversation/composer/history.ts";
import { isComposing, sendHint, sends } from "../src/conversation/composer/keys.ts";
import type { Item, PromptItem } from "../src/conversation/transcript.ts";

/** What the tabs of a browser share. */
class Shared implements Store {
  readonly values = new Map<string, string>();
  get = (name: string) => this.values.get(name);
  set = (name: string, value: string) => void this.values.set(name, value);
  remove = (name: string) => void this.values.delete(name);
}

const draft = (text: string) => ({ text, files: [] });

describe("drafts", () => {
  test("a draft survives a reload, with its files", () => {
    const shared = new Shared();
    const written = { text: "Fix\nit", files: [{ id: "0123456789abcdef-a.png", name: "a.png", bytes: 12 }] };
    new DraftStore(shared, "/").save("s1", written);
    const after = new DraftStore(shared, "/");
    expect(after.load("s1")).toEqual(written);
    expect(after.load("s2")).toEqual(EMPTY_DRAFT);
  });

  test("gateways under other paths have their own", () => {
    const shared = new Shared();
    new DraftStore(shared, "/").save("s", draft("root"));
    new DraftStore(shared, "/lab/").save("s", draft("lab"));
    expect(new DraftStore(shared, "/").load("s").text).toBe("root");
    expect(new DraftStore(shared, "/lab/").load("s").text).toBe("lab");
    expect([...shared.values.keys()]).toContain("bowline.draft.s /lab/");
  });

  test("an empty draft, and one that was sent, leave nothing behind", () => {
    const shared = new Shared();
    const drafts = new DraftStore(shared, "/");
    drafts.save("s1", draft("a"));
    drafts.save("s2", draft("b"));
    drafts.save("s1", EMPTY_DRAFT);
    drafts.remove("s2");
    expect([...shared.values]).toEqual([["bowline.drafts", "[]"]]);
  });

  test("sending in one tab keeps what another tab has written since", () => {
    const shared = new Shared();
    const [one, two] = [new DraftStore(shared, "/"), new DraftStore(shared, "/")];
    one.save("s", draft("sent soon"));
    two.load("s");
    two.save("s", draft("written later"));
    one.remove("s");
    expect(new DraftStore(shared, "/").load("s").text).toBe("written later");
    two.remove("s");
    expect(new DraftStore(shared, "/").load("s").text).toBe("");
  });

  test("the drafts that were changed longest ago make room", () => {
    const shared = new Shared();
    const drafts = new DraftStore(shared, "/");
    for (let i = 0; i < MAX_DRAFTS; i++) drafts.save(`s${i}`, draft(`text ${i}`));
    drafts.save("s0", draft("changed"));
    drafts.save("another", draft("one more"));
    expect(drafts.load("s0").text).toBe("changed");
    expect(drafts.load("s1").text).toBe("");
    expect(drafts.load("s2").text).toBe("text 2");
    expect(shared.values.size).toBe(MAX_DRAFTS + 1);

    const long = "x".repeat(MAX_DRAFT - 100);
    for (const id of ["a", "b", "c", "d"]) drafts.save(id, draft(long));
    const kept = [...shared.values.values()].reduce((sum, { length }) => sum + length, 0);
    expect(kept).toBeLessThan(MAX_DRAFTS_TOTAL + 5000);
    expect(drafts.load("d").text).toBe(long);
    expect(drafts.load("a").text).toBe("");
  });

  test("a text that is too long to be sent is not kept, and neither is what it was before", () => {
    const drafts = new DraftStore(new Shared(), "/");
    drafts.save("s", draft("short"));
    drafts.save("s", draft("x".repeat(MAX_DRAFT)));
    expect(drafts.load("s")).toEqual(EMPTY_DRAFT);
  });

  test("storage that throws, and damaged drafts, break nothing", () => {
    const throwing = openStore("local", () => {
      throw new Error("denied");
    });
    const drafts = new DraftStore(throwing, "/");
    drafts.save("s", draft("in memory"));
    expect(drafts.load("s").text).toBe("in memory");

    const shared = new Shared();
    for (const damaged of ["{", "null", "7", '"text"', '{"text":1,"files":[{"id":2},7]}', "[]"]) {
      shared.set("bowline.draft.s", damaged);
      shared.set("bowline.drafts", damaged);
      expect(new DraftStore(shared, "/").load("s")).toEqual(EMPTY_DRAFT);
      const after = new DraftStore(shared, "/");
      after.save("other", draft("fine"));
      expect(after.load("other").text).toBe("fine");
    }
  });
});

describe("the Enter key", () => {
  const none = { ctrlKey: false, metaKey: false, shiftKey: false, altKey: false };
  const press = (changes: object = {}) => ({ key: "Enter", keyCode: 13, isComposing: false, ...none, ...changes });

  test("sends by the setting, and never with Shift", () => {
    expect(sends(press(), "enter")).toBe(true);
    expect(sends(press({ ctrlKey: true }), "enter")).toBe(true);
    expect(sends(press(), "ctrl-enter")).toBe(false);
    expect(sends(press({ ctrlKey: true }), "ctrl-enter")).toBe(true);
    expect(sends(press({ metaKey: true }), "ctrl-enter")).toBe(true);
    for (const setting of ["enter", "ctrl-enter"] as const) {
      expect(sends(press({ shiftKey: true }), setting)).toBe(false);
      expect(sends(press({ shiftKey: true, ctrlKey: true }), setting)).toBe(false);
      expect(sends(press({ key: "a" }), setting)).toBe(false);
    }
  });

  test("never sends while an input method composes, also in Safari", () => {
    expect(sends(press({ isComposing: true }), "enter")).toBe(false);
    expect(sends(press({ keyCode: 229 }), "enter")).toBe(false);
    expect(sends(press({ keyCode: 229, ctrlKey: true }), "ctrl-enter")).toBe(false);
    expect(isComposing({ isComposing: false, keyCode: 13 })).toBe(false);
  });

  test("is explained", () => {
    expect(sendHint("enter", false)).toBe("Enter to send, Shift+Enter for a new line");
    expect(sendHint("ctrl-enter", false)).toBe("Ctrl+Enter to send");
    expect(sendHint("ctrl-enter", true)).toBe("⌘+Enter to send");
  });
});

describe("earlier prompts", () => {
  const item = (text: string, run = text): PromptItem => ({
    kind: "prompt",
    key: `prompt ${run}`,
    seq: 0,
    at: "",
    run,
    command: "c",
    text,
    attachments: [],
    by: "me",
    unstarted: false,
  });
  const notice: Item = { kind: "notice", key: "n", seq: 1, at: "", level: "info", text: "not a prompt" };

  test("the newest come first, without repeats", () => {
    const items = [item("one", "r0"), notice, item("two", "r1"), item("one", "r2"), item(" ", "r3")];
    expect(earlierPrompts(items, [item("waits")])).toEqual(["waits", "one", "two"]);
  });

  test("are recalled in an empty composer, and left downwards", () => {
    const history = new PromptHistory();
    const prompts = () => ["three", "two", "one"];
    expect(history.older("", 0, prompts)).toBe("three");
    expect(history.older("three", 5, prompts)).toBe("two");
    expect(history.older("two", 3, prompts)).toBe("one");
    expect(history.older("one", 3, prompts), "there is none before").toBeUndefined();
    expect(history.newer("one", 3)).toBe("two");
    expect(history.newer("two", 3)).toBe("three");
    expect(history.newer("three", 5)).toBe("");
    expect(history.newer("", 0), "the draft is the end").toBeUndefined();
    expect(history.older("", 0, prompts)).toBe("three");
  });

  test("never replace what the user has written", () => {
    const history = new PromptHistory();
    const prompts = () => ["two", "one"];
    expect(history.older("draft", 5, prompts)).toBeUndefined();
    expect(history.older("", 0, prompts)).toBe("two");
    expect(history.older("two, changed", 12, prompts)).toBeUndefined();
    expect(history.newer("two, changed", 12)).toBeUndefined();
    expect(history.older("", 0, () => [])).toBeUndefined();
  });

  test("the arrows move within a prompt of several lines", () => {
    const history = new PromptHistory();
    const prompts = () => ["a\nb", "c"];
    expect(history.older("", 0, prompts)).toBe("a\nb");
    expect(history.older("a\nb", 3, prompts), "the caret is on the second line").toBeUndefined();
    expect(history.newer("a\nb", 0), "the caret is on the first line").toBeUndefined();
    expect(history.older("a\nb", 1, prompts)).toBe("c");
  });
});
