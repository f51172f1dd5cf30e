/** Text about conversations, what is read from tool calls, and which items are in the page. */
import { describe, expect, test } from "vitest";
import { attachmentName, isPicture } from "../src/conversation/attachments.ts";
import { firstOfNewer, firstOfOlder, LATEST, MOST, rangeOf, STEP } from "../src/conversation/range.ts";
import {
  approvalText,
  bytesText,
  costText,
  durationText,
  endText,
  isFailure,
  retryText,
  tokensText,
  usageText,
} from "../src/conversation/text.ts";
import { relativePath, toolCommand, toolFiles, toolInput, toolParts } from "../src/conversation/tool.ts";
import type { ApprovalItem, EndItem } from "../src/conversation/transcript.ts";

const complete = {
  run: "r0",
  started: true,
  success: false,
  aborted: false,
  interrupted: false,
  exit_code: null,
  signal: null,
  stop_reason: null,
  conversation: null,
};
const end = (changes: Partial<EndItem["complete"]>, startedAt?: string): EndItem => ({
  kind: "end",
  key: "end 9",
  seq: 9,
  at: "2026-01-01T00:01:05Z",
  complete: { ...complete, ...changes },
  startedAt,
  usage: undefined,
});

describe("the end of a run", () => {
  const START = "2026-01-01T00:00:00Z";
  test.each<[Partial<EndItem["complete"]>, string | undefined, string, boolean]>([
    [{ success: true }, START, "Finished in 1 min 5 s", false],
    [{ success: true }, undefined, "Finished", false],
    [{ aborted: true }, START, "Stopped after 1 min 5 s", false],
    [{ aborted: true, started: false }, undefined, "Withdrawn", false],
    [
      { started: false, error: { code: "no_program", message: "claude is not installed" } },
      undefined,
      "Not started: claude is not installed",
      true,
    ],
    [{ interrupted: true }, START, "Interrupted after 1 min 5 s: the session ended", true],
    [{ error: { code: "agent_exited", message: "the agent exited" } }, undefined, "Failed: the agent exited", true],
    [{ stop_reason: "max_tokens" }, undefined, "Ended early: max_tokens", true],
  ])("%o reads as %s", (changes, startedAt, text, failed) => {
    expect([endText(end(changes, startedAt)), isFailure(end(changes))]).toEqual([text, failed]);
  });

  test("says when a usage limit ends, if the agent has said so", () => {
    const error = { code: "usage_limit", message: "limit reached", retry_at: "2026-01-01T05:00:00Z" };
    expect(retryText(end({ error }))).toMatch(/^Works again from .+\.$/);
    expect(retryText(end({ error: { code: "x", message: "" } }))).toBe("");
  });
});

test("a closed approval says how it ended, which lasting option was chosen, and by whom", () => {
  const option = { id: "always", kind: "allow_always", label: "Always allow ls" } as const;
  const approval = {
    id: "a0",
    run: "r0",
    kind: "permission",
    tool: "Bash",
    title: "ls",
    detail: {},
    truncated: false,
    options: [option],
    at: "",
  } as const;
  const item = { kind: "approval", key: "", seq: 1, at: "", id: "a0", reason: undefined } as const;
  const text = (changes: Partial<ApprovalItem>) =>
    approvalText({
      ...item,
      approval: { ...approval, options: [...approval.options] },
      outcome: "allowed",
      option: undefined,
      by: undefined,
      ...changes,
    });
  expect(text({ by: "phone" })).toBe("Allowed by phone");
  expect(text({ by: "local", option: "always" })).toBe("Allowed by a terminal on the server (Always allow ls)");
  expect(text({ outcome: "lost" })).toBe("Not needed any more: the agent went on or ended");
});

test("numbers are short", () => {
  expect([8_000, 125_000, 120_000, 3_840_000, 3_600_000].map(durationText)).toEqual([
    "8 s",
    "2 min 5 s",
    "2 min",
    "1 h 4 min",
    "1 h",
  ]);
  expect([950, 12_345, 1_000_000, 999_960].map(tokensText)).toEqual(["950", "12.3k", "1M", "1M"]);
  expect([950, 12_300, 3_565_158].map(bytesText)).toEqual(["950 bytes", "12 KB", "3.4 MB"]);
  expect([0.0123, 1.5].map(costText)).toEqual(["$0.0123", "$1.50"]);
  const tokens = { input: 900, output: 100, cache_read: 0, cache_write: 0 };
  expect(usageText({ tokens, cost: 0.5, context: { used: 50, size: 200 } })).toBe("1k tokens · $0.50 · 25% of context");
  expect(usageText({ tokens, context: { used: 50, size: 0 } })).toBe("1k tokens");
});

describe("a tool call", () => {
  test("has texts, diffs and files before and after, whatever the agent calls them", () => {
    expect(toolParts("plain")).toEqual([{ kind: "text", text: "plain" }]);
    const content = [
      { type: "content", content: { type: "text", text: "out" } },
      { type: "diff", path: "/a", oldText: null, newText: "x" },
      { type: "diff", path: "/b", diff: "@@ -1 +1 @@" },
      { type: "terminal", terminalId: "t" },
    ];
    expect(toolParts(content).map(({ kind }) => kind)).toEqual(["text", "change", "diff", "other"]);
  });

  test.each([null, undefined, 7, "", [], [null], [[[]]], { a: 1 }, [{ type: "diff" }], [{ type: "diff", oldText: 7 }]])(
    "of an odd shape, %j, throws nothing",
    (content) => {
      expect(() => [
        toolParts(content),
        toolCommand(content),
        toolInput(content, []),
        toolFiles(content),
      ]).not.toThrow();
    },
  );

  test("shows its command, its other input and its files", () => {
    expect([
      toolCommand({ command: "ls -l" }),
      toolCommand({ command: ["ls", "-l"] }),
      toolCommand({ command: 7 }),
    ]).toEqual(["ls -l", "ls -l", undefined]);
    expect([toolInput({ command: "ls" }, ["command"]), toolInput({ command: "ls", depth: 2 }, ["command"])]).toEqual([
      "",
      '{\n  "depth": 2\n}',
    ]);
    expect([relativePath("/w/a/b.rs", "/w"), relativePath("/wa/b", "/w")]).toEqual(["a/b.rs", "/wa/b"]);
    expect(toolFiles([{ path: "/a", line: 3 }, { path: "/a", line: 3 }, { path: "/b" }, { path: 7 }])).toEqual([
      "/a:3",
      "/b",
    ]);
  });
});

describe("the items in the page", () => {
  const items = Array.from({ length: 1000 }, (_, i) => ({ key: `k${i}` }));

  test("are the newest, or those from the first one that the reader wants", () => {
    expect(rangeOf(items, undefined)).toEqual({ start: 1000 - LATEST, end: 1000 });
    expect(rangeOf(items, "k10")).toEqual({ start: 10, end: 10 + MOST });
    expect(rangeOf(items, "gone"), "its item was dropped").toEqual({ start: 1000 - LATEST, end: 1000 });
    expect(rangeOf(items.slice(0, 5), undefined)).toEqual({ start: 0, end: 5 });
  });

  test("move in steps, until an end is reached", () => {
    expect(firstOfOlder(items, { start: 100, end: 360 })).toBe(`k${100 - STEP}`);
    expect(firstOfOlder(items, { start: 0, end: 260 })).toBeUndefined();
    expect(firstOfNewer(items, { start: 100, end: 360 })).toBe(`k${100 + STEP}`);
    expect(firstOfNewer(items, { start: 740, end: 1000 })).toBeUndefined();
  });
});

test("the id of an upload has its name, and tells whether it is a picture", () => {
  expect(attachmentName("5f0c1b9e2d7a4c38-shot.png")).toBe("shot.png");
  expect(["5f0c1b9e2d7a4c38-shot.png", "5f0c1b9e2d7a4c38-notes.txt"].map(isPicture)).toEqual([true, false]);
});
