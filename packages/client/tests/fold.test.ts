/** The fold against fixtures/agent/fold.json, which is what the Rust fold does. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type AgentRecord, EMPTY_CONVERSATION, fold, readEvent, readRecord } from "../src/core/index.js";
import { conversationState } from "../src/core/message.js";
import type { ConversationState } from "../src/index.js";
import { load } from "./vectors.js";

interface Journal {
  readonly name: string;
  readonly records: AgentRecord[];
  /** The state after each record. */
  readonly states: ConversationState[];
}

const vectors = load("agent/fold.json");
const journals: Journal[] = [
  ...vectors.written.map(({ name, steps }: any) => ({
    name,
    records: steps.map(({ record }: any) => readRecord(record)),
    states: statesOf(steps.map(({ then }: any) => then)),
  })),
  ...vectors.captured.map(({ file, then }: any) => ({ name: file, records: captured(file), states: statesOf(then) })),
];

/** Applies the changes of each event, one after the other, to the state without events. */
function statesOf(changes: any[]): ConversationState[] {
  const optional = ["step", "usage", "config", "exit"];
  let state: any = {};
  return changes.map((change) => {
    state = { ...state, ...change };
    for (const key of optional) if (state[key] === null) delete state[key];
    return state;
  });
}

function captured(file: string): AgentRecord[] {
  const text = readFileSync(new URL(`../../../fixtures/agents/${file}`, import.meta.url), "utf8");
  const lines: unknown[] = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const events = lines.filter((line) => (line as { type?: unknown }).type !== undefined);
  return events.map((event, seq) => readRecord({ seq, at: `t${seq}`, event }));
}

describe("R35: the fold is the one of the session process", () => {
  test.each(journals)("$name", ({ records, states }) => {
    expect(records).toHaveLength(states.length);
    let state = EMPTY_CONVERSATION;
    records.forEach((record, i) => {
      const before = JSON.stringify(state);
      const next = fold(state, record);
      expect(JSON.stringify(state), "the state before is not changed").toBe(before);
      state = next;
      expect(state, `after ${i}: ${JSON.stringify(record).slice(0, 300)}`).toEqual(states[i]);
    });
  });

  test("a client may start from any page: from the state at its end, the rest is the same", () => {
    for (const { name, records, states } of journals) {
      states.slice(0, -1).forEach((start, i) => {
        const state = fold(conversationState(JSON.parse(JSON.stringify(start))), records[i + 1]!);
        expect(state, `${name}, from ${i}`).toEqual(states[i + 1]);
      });
    }
  });

  test("an event that changes nothing returns the same state", () => {
    const text = (delta: string) => readEvent({ type: "text", run: "r0", block: "m", delta });
    const events = [
      readEvent({ type: "prompt", run: "r0", command: "c", digest: "d", by: "local", text: "hi" }),
      readEvent({ type: "run_started", run: "r0", cause: "prompt" }),
      text("a"),
    ];
    const state = events.reduce((state, event, seq) => fold(state, { seq, at: "", event }), EMPTY_CONVERSATION);
    expect(state.activity?.text).toBe("Writing");
    expect(fold(state, { seq: 3, from: 3, at: "", event: text("b") })).toBe(state);
    expect(fold(state, { seq: 4, at: "", event: readEvent({ type: "hologram" }) })).toBe(state);
  });
});

describe("events are read defensively", () => {
  test.each([
    null,
    7,
    [],
    {},
    { type: "hologram" },
    { type: "__proto__" },
    { type: "title", title: 7 },
    { type: "usage", run: null, tokens: { input: 2 ** 53 } },
    { type: "tool_call", run: "r0", call: "c", blob: { seq: 2 ** 53, bytes: 1 } },
  ])("%j is unknown", (event) => expect(readEvent(event)).toEqual({ type: "unknown" }));

  test("a plan that was cut says so", () => {
    const plan = { type: "plan", run: null, entries: [], truncated: true };
    expect(readEvent(plan)).toEqual(plan);
  });

  test("values of a newer server are unknown, fields of one are dropped", () => {
    expect(readEvent({ type: "notice", level: "siren", text: "x", colour: "red" })).toEqual({
      type: "notice",
      level: "unknown",
      text: "x",
    });
  });

  test("an event cannot change the prototype of what is read", () => {
    const hostile = JSON.parse('{"type":"raw","source":"acp","message":null,"__proto__":{"polluted":true}}');
    const event = readEvent(hostile) as { polluted?: unknown };
    expect([event.polluted, Object.getPrototypeOf(event)]).toEqual([undefined, Object.prototype]);
  });
});
