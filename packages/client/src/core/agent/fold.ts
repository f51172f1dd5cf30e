/**
 * The state of a conversation, derived from its events alone: the twin of `crates/proto/src/agent/fold.rs`, for the part of
 * the fold that clients get.
 *
 * States are values. An event that changes nothing, as most pieces of a text do, returns the state that it was given.
 */
import { CALL_ID, OPEN_TOOLS, TOOL_TITLE } from "../config.js";
import type { Activity, AgentEvent, ConversationState, Delta, OpenRun, OpenTool, Step, ToolCall } from "../wire.js";
import type { AgentRecord } from "./event.js";
import { addUsed } from "./usage.js";

/** The state of a conversation without events. */
export const EMPTY_CONVERSATION: ConversationState = {
  title: "",
  conversation: null,
  activity: null,
  queued: 0,
  runs: [],
  tools: [],
  approvals: [],
  degraded: false,
};

/** The state after one more event. */
export function fold(state: ConversationState, record: AgentRecord): ConversationState {
  const changes = changesOf(state, record.event, record.at);
  if (!changes) return state;
  const next = { ...state, ...changes };
  for (const key of ["step", "exit"] as const) if (next[key] === undefined) delete next[key];
  return derive(next as ConversationState);
}

/** A field that is `undefined` is removed. */
type Changes = { [K in keyof ConversationState]?: ConversationState[K] | undefined };

/** What an event changes; `undefined` if nothing. */
function changesOf(state: ConversationState, event: AgentEvent, at: string): Changes | undefined {
  switch (event.type) {
    case "started":
      return { exit: undefined, degraded: false };
    case "prompt":
      return beginRun(state, { run: event.run, at, started: false, aborted: false });
    case "run_started":
      return { ...beginRun(state, { run: event.run, at, started: true, aborted: false }), tools: [], step: undefined };
    case "approval_requested":
      return { approvals: [...state.approvals, event.approval] };
    case "approval_resolved":
      return { approvals: state.approvals.filter((open) => open.id !== event.approval) };
    case "abort_requested":
      return { runs: abort(state.runs, event.run, event.queue === true) };
    case "text":
      return changeStep(state, event, "writing");
    case "thinking":
      return changeStep(state, event, "thinking");
    case "tool_call":
    case "tool_update":
      return changeTools(state, event);
    case "complete":
      return endRun(state, event.run);
    case "conversation":
      return { conversation: event.id };
    case "usage":
      return { usage: addUsed(state.usage, event) };
    case "config": {
      const { type: _, ...config } = event;
      return { config };
    }
    case "title":
      return { title: event.title };
    case "degraded":
      return { degraded: true };
    case "exit":
      return { exit: { code: event.code, signal: event.signal } };
    case "repaired":
    case "plan":
    case "steered":
    case "set":
    case "notice":
    case "raw":
    case "unknown":
      return undefined;
  }
}

function beginRun(state: ConversationState, begun: OpenRun): Changes | undefined {
  const { runs } = state;
  const known = runs.find((open) => open.run === begun.run);
  if (!known) {
    // A run that the agent begins by itself comes before the prompts that wait.
    return { runs: begun.started ? [begun, ...runs] : [...runs, begun] };
  }
  if (known.started || !begun.started) return undefined;
  return { runs: runs.map((open) => (open === known ? { ...open, started: true } : open)) };
}

function endRun(state: ConversationState, run: string): Changes {
  const runs = state.runs.filter((open) => open.run !== run);
  // The agent still waits for the answers.
  const approvals = state.approvals.map((open) => (open.run === run ? { ...open, run: null } : open));
  return runs[0]?.started ? { runs, approvals } : { runs, approvals, tools: [], step: undefined };
}

/** Aborts a run. With `queue`, also those behind it: a run that the agent began by itself comes before older prompts. */
function abort(runs: OpenRun[], run: string, queue: boolean): OpenRun[] {
  const first = runs.findIndex((open) => open.run === run);
  if (first < 0) return runs;
  return runs.map((open, i) => (i === first || (queue && i > first) ? { ...open, aborted: true } : open));
}

function changeStep(state: ConversationState, { run, parent }: Delta, step: Step): Changes | undefined {
  // A sub-agent's text is part of its tool call.
  const counts = isCurrent(state, run) && parent === undefined && state.step !== step;
  return counts ? { step } : undefined;
}

function changeTools(state: ConversationState, { run, call, title, status }: ToolCall): Changes | undefined {
  if (!isCurrent(state, run) || byteLength(call) > CALL_ID) return undefined;
  const { tools } = state;
  const known = tools.find((tool) => tool.call === call);
  if (status !== undefined && status !== "pending" && status !== "in_progress") {
    return known && { tools: tools.filter((tool) => tool !== known) };
  }
  if (known && (title === undefined || title === known.title)) return undefined;
  const changed: OpenTool = { call, title: firstCharacters(title ?? "", TOOL_TITLE) };
  if (known) return { tools: tools.map((tool) => (tool === known ? changed : tool)) };
  return { tools: [...tools, changed].slice(-OPEN_TOOLS) };
}

/** Whether the run is in the agent. */
function isCurrent(state: ConversationState, run: string | null): boolean {
  const first = state.runs[0];
  return first !== undefined && first.started && first.run === run;
}

/** Computes `activity` and `queued` from the other fields. */
function derive(state: ConversationState): ConversationState {
  const activity = activityOf(state);
  const before = state.activity;
  const same =
    activity &&
    before &&
    activity.run === before.run &&
    activity.text === before.text &&
    activity.can_interrupt === before.can_interrupt &&
    activity.started_at === before.started_at;
  return { ...state, activity: same ? before : activity, queued: Math.max(state.runs.length - 1, 0) };
}

function activityOf(state: ConversationState): Activity | null {
  const open = state.runs[0];
  if (!open) return null;
  const { run, at, aborted } = open;
  return { run, text: activityText(state, open), can_interrupt: !aborted, started_at: at };
}

function activityText({ tools, step, approvals }: ConversationState, open: OpenRun): string {
  if (open.aborted) return "Stopping";
  if (!open.started) return "Waiting for the agent";
  const tool = tools.at(-1);
  if (tool) return tool.title || "Using a tool";
  if (approvals.some((approval) => approval.run === open.run)) return "Waiting for an approval";
  if (step === "thinking") return "Thinking";
  return step === "writing" ? "Writing" : "Working";
}

/** The number of bytes as UTF-8. */
function byteLength(text: string): number {
  return text.length > CALL_ID ? text.length : new TextEncoder().encode(text).length;
}

/** Counts whole characters, as Rust does, not UTF-16 units. */
function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text;
  let end = 0;
  for (const character of text) {
    if (count-- === 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}
