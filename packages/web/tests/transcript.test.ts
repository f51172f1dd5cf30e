/** The transcript: what it makes of captured conversations, and that it does not depend on how they are loaded. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { AgentRecord } from "@bowline/client";
import { readEvent } from "@bowline/client/core";
import { describe, expect, test } from "vitest";
import { type Item, Transcript } from "../src/conversation/transcript.ts";

const CAPTURED = resolve(import.meta.dirname, "../../../fixtures/agents");

function recordsOf(events: readonly unknown[]): AgentRecord[] {
  const time = (seq: number) => new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString();
  return events.map((event, seq) => ({ seq, at: time(seq), event: readEvent(event) }));
}

/** The events that each captured stream leads to. */
const captured = readdirSync(CAPTURED, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name }) =>
    readdirSync(join(CAPTURED, name))
      .filter((file) => file.endsWith(".events.jsonl"))
      .map((file) => join(CAPTURED, name, file)),
  )
  .map((file) => ({
    name: file.slice(CAPTURED.length + 1),
    records: recordsOf(
      readFileSync(file, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line))
        .filter((event) => typeof event.type === "string"),
    ),
  }));

function transcriptOf(records: readonly AgentRecord[]): Transcript {
  const transcript = new Transcript();
  transcript.reset(records);
  return transcript;
}

const make = (...events: object[]) => transcriptOf(recordsOf(events));
const source = { command: "c", digest: "0123456789abcdef", by: "phone" };
const prompt = (run: string, text = "Fix it") => ({ type: "prompt", run, text, attachments: [], ...source });
const started = (run: string, cause = "prompt") => ({ type: "run_started", run, cause });
const text = (run: string, block: string, delta: string) => ({ type: "text", run, block, delta });
const complete = (run: string, changes: object = {}) => ({
  type: "complete",
  run,
  started: true,
  success: true,
  aborted: false,
  interrupted: false,
  exit_code: null,
  signal: null,
  stop_reason: null,
  conversation: null,
  ...changes,
});
const kinds = ({ items }: Transcript) => items.map(({ kind }) => kind);

function flat(items: readonly Item[]): Item[] {
  return items.flatMap((item) => [item, ...(item.kind === "tool" ? flat(item.children) : [])]);
}

describe("captured conversations", () => {
  test.each(captured)("R40: $name is the same however it is loaded", ({ records }) => {
    const whole = transcriptOf(records);
    for (let cut = 0; cut <= records.length; cut++) {
      // The page at the end, live events, and an older page at any time.
      const parts = new Transcript();
      const end = Math.min(cut + 3, records.length);
      parts.reset(records.slice(cut, end));
      for (const record of records.slice(end)) {
        parts.append([record]);
        void parts.items;
      }
      parts.prepend(records.slice(0, cut));
      expect(parts.items).toEqual(whole.items);
      expect([parts.waiting, parts.plan, parts.start]).toEqual([whole.waiting, whole.plan, whole.start]);
    }
  });

  test.each(captured)("$name has every key once", ({ records }) => {
    const keys = flat(transcriptOf(records).items).map(({ key }) => key);
    expect(keys).toEqual([...new Set(keys)]);
  });

  test.each(captured)("$name keeps the items that an event does not concern", ({ records }) => {
    const transcript = new Transcript();
    for (const record of records) {
      const before = transcript.items;
      transcript.append([record]);
      const changed = before.filter((item, i) => transcript.items[i] !== item);
      // The end of a run may end several tools.
      if (record.event.type !== "complete") expect(changed.length).toBeLessThan(2);
    }
  });

  test("a sub-agent's tools are below its tool call", () => {
    const { records } = captured.find(({ name }) => name === "claude/subagent.events.jsonl")!;
    const tools = transcriptOf(records).items.filter((item) => item.kind === "tool");
    expect(tools.map(({ name, children }) => [name, children.map(({ kind }) => kind)])).toEqual([["Agent", ["tool"]]]);
  });
});

describe("prompts and runs", () => {
  test("R59: a queued prompt waits, and comes where its run begins", () => {
    const before = make(prompt("r0"), started("r0"), text("r0", "1", "One"), prompt("r1", "Next"));
    expect(before.waiting.map(({ run }) => run)).toEqual(["r1"]);
    const after = make(
      prompt("r0"),
      started("r0"),
      text("r0", "1", "One"),
      prompt("r1", "Next"),
      text("r0", "1", " and two"),
      complete("r0"),
      started("r1"),
    );
    expect(kinds(after)).toEqual(["prompt", "text", "end", "prompt"]);
    expect(after.items[1]).toMatchObject({ text: "One and two", open: false });
    expect(after.waiting).toEqual([]);
  });

  test("a prompt that the agent never got says so", () => {
    const withdrawn = make(prompt("r0"), complete("r0", { started: false, success: false, aborted: true }));
    expect(withdrawn.items[0]).toMatchObject({ kind: "prompt", unstarted: true });
    expect(withdrawn.waiting).toEqual([]);
  });

  test("a run's end closes its texts and tools, and tells its time and cost", () => {
    const tokens = { input: 10, output: 5, cache_read: 0, cache_write: 0 };
    const { items } = make(
      prompt("r0"),
      started("r0"),
      { type: "tool_call", run: "r0", call: "t", name: "Bash", kind: "execute", title: "make", status: "in_progress" },
      text("r0", "1", "Working"),
      { type: "usage", run: "r0", tokens, cost: 0.25 },
      { type: "usage", run: "r0", tokens, cost: 0.5 },
      complete("r0", { success: false, aborted: true }),
    );
    expect(items[1]).toMatchObject({ kind: "tool", status: "stopped" });
    expect(items[2]).toMatchObject({ kind: "text", open: false });
    expect(items[3]).toMatchObject({ kind: "end", usage: { cost: 0.75, tokens: { input: 20 } } });
    expect(items[3]).toMatchObject({ startedAt: "2026-01-01T00:00:01.000Z", at: "2026-01-01T00:00:06.000Z" });
  });

  test("a tool that goes on after its run reports its end", () => {
    const tool = { run: "r0", call: "t", name: "Bash", kind: "execute", title: "make" };
    const { items } = make(started("r0"), { type: "tool_call", ...tool, status: "in_progress" }, complete("r0"), {
      type: "tool_update",
      run: null,
      call: "t",
      status: "completed",
    });
    expect(items[0]).toMatchObject({ kind: "tool", status: "done" });
  });

  test("a restarted agent may use the id of a tool call again", () => {
    const tool = (run: string) => ({
      ...{ type: "tool_call", run, call: "t", name: "Bash", kind: "execute", title: run, status: "completed" },
    });
    const { items } = make(started("r0"), tool("r0"), complete("r0"), started("r1"), tool("r1"));
    expect(items.flatMap((item) => (item.kind === "tool" ? [item.title] : []))).toEqual(["r0", "r1"]);
  });
});

describe("other events", () => {
  test("a plan is shown beside the run, and stays in the transcript when that ends", () => {
    const entries = [
      { content: "Look", status: "completed" },
      { content: "Mend", status: "in_progress" },
      { odd: 1 },
      7,
    ];
    const steps = [
      { text: "Look", status: "done" },
      { text: "Mend", status: "running" },
    ];
    const open = make(started("r0"), { type: "plan", run: "r0", entries });
    expect(open.plan).toEqual(steps);
    const over = make(started("r0"), { type: "plan", run: "r0", entries }, complete("r0"));
    expect(over.plan).toEqual([]);
    expect(over.items[0]).toMatchObject({ kind: "plan", steps });
  });

  test("R36: an approval is shown when it is closed, with who closed it", () => {
    const approval = {
      ...{ id: "a0", run: "r0", kind: "permission", tool: "Bash", title: "rm -r build", detail: {}, options: [] },
      ...{ truncated: false, at: "2026-01-01T00:00:00Z" },
    };
    const requested = { type: "approval_requested", approval };
    expect(make(started("r0"), requested).items).toEqual([]);
    const resolved = { type: "approval_resolved", approval: "a0", outcome: "allowed", option: "once", ...source };
    expect(make(started("r0"), requested, resolved).items[0]).toMatchObject({
      ...{ kind: "approval", outcome: "allowed", by: "phone", approval: { title: "rm -r build" } },
    });
  });

  test("debug notices, raw and unknown events are not shown", () => {
    const { items } = make(
      { type: "notice", level: "debug", text: "hm" },
      { type: "raw", source: "acp", message: {} },
      { type: "of-a-newer-version" },
      { type: "notice", level: "warning", text: "Careful" },
    );
    expect(items).toMatchObject([{ kind: "notice", text: "Careful" }]);
  });
});

describe("trimming", () => {
  const run = (n: number) => [prompt(`r${n}`), started(`r${n}`), text(`r${n}`, "1", `${n}`), complete(`r${n}`)];
  const many = recordsOf(Array.from({ length: 50 }, (_, n) => run(n)).flat());

  test("drops the oldest events at the beginning of a run, and pages bring them back", () => {
    const transcript = transcriptOf(many);
    expect(transcript.trim(200)).toBeUndefined();
    const start = transcript.trim(100)!;
    expect(start).toBeGreaterThanOrEqual(150);
    expect(transcript.items[0]).toMatchObject({ kind: "prompt" });
    transcript.prepend(many.slice(0, start));
    expect(transcript.items).toEqual(transcriptOf(many).items);
  });

  test("keeps prompts that wait", () => {
    const waiting = recordsOf([prompt("r0"), started("r0"), prompt("r1"), ...many.map(() => text("r0", "1", "x"))]);
    const transcript = transcriptOf(waiting);
    transcript.trim(20);
    expect(transcript.waiting).toHaveLength(1);
  });
});

test("R40: a text that streams for an hour is one record", () => {
  const transcript = make(prompt("r0"), started("r0"));
  const at = new Date(0).toISOString();
  for (let seq = 2; seq < 20_000; seq++)
    transcript.append([{ seq, at, event: readEvent(text("r0", "m0", "a word ")) }]);
  expect(transcript.size).toBe(3);
  expect(transcript.start).toBe(0);
  const last = transcript.items.at(-1)!;
  expect(last.kind === "text" && last.text.length).toBe(7 * 19_998);
});
