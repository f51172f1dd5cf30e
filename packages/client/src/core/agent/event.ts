/**
 * Reads the events of an agent session. As in Rust, an event of an unknown type, or of a shape that this version does not
 * know, is `unknown`: it has its number and its time, and changes nothing.
 */
import { agentConfigFields, approval, context, epoch, exitCode, u32 } from "../message.js";
import {
  anything,
  attempt,
  checked,
  count,
  defaulted,
  type Fields,
  flag,
  list,
  nullable,
  object,
  oneOfOrUnknown,
  optional,
  type Shape,
  ShapeError,
  tagged,
  text,
} from "../shape.js";
import type {
  AgentEvent,
  Approval,
  CommandSource,
  Complete,
  Delta,
  OptionValue,
  RunError,
  Tokens,
  ToolBlob,
  ToolCall,
  Usage,
} from "../wire.js";
import { roundedCost } from "./usage.js";

/** An event with its place in the journal. */
export interface AgentRecord {
  readonly seq: number;
  /** The first number that it stands for, if it stands for several. */
  readonly from?: number;
  /** When it was recorded, RFC 3339 UTC. */
  readonly at: string;
  readonly event: AgentEvent;
}

/** A record whose event has not been read yet. */
export type UnreadRecord = Omit<AgentRecord, "event"> & { readonly event: unknown };

/** Reads an event. */
export function readEvent(event: unknown): AgentEvent {
  return readKnown(event) ?? { type: "unknown" };
}

/** Reads the event of a record. */
export function readRecord({ seq, from, at, event }: UnreadRecord): AgentRecord {
  return { seq, ...(from === undefined ? {} : { from }), at, event: readEvent(event) };
}

const MAX_U64 = "18446744073709551615";

/** The id of a run or an approval: a letter and a u64, without a sign or leading zeros. */
function numbered(letter: string): Shape<string> {
  const form = new RegExp(`^${letter}(0|[1-9][0-9]{0,19})$`);
  return checked(`${letter} and a number`, (id) => {
    const digits = form.exec(id)?.[1];
    return digits !== undefined && (digits.length < MAX_U64.length || digits <= MAX_U64);
  });
}

const run = numbered("r");
const approvalId = numbered("a");
const openApproval: Shape<Approval> = (value) => {
  const read = approval(value);
  approvalId(read.id);
  nullable(run)(read.run);
  return read;
};
const cost: Shape<number> = (value) => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new ShapeError("expected a number");
  return roundedCost(value);
};
const tokenCount = defaulted(count, 0);
const source: Fields<CommandSource> = { command: text, digest: text, by: text };
const delta: Fields<Delta> = { run: nullable(run), block: text, parent: optional(text), delta: text };
const toolCall: Fields<ToolCall> = {
  run: nullable(run),
  call: text,
  parent: optional(text),
  name: optional(text),
  kind: optional(text),
  title: optional(text),
  status: optional(text),
  input: optional(anything),
  content: optional(anything),
  locations: optional(anything),
  blob: optional(object<ToolBlob>({ seq: count, bytes: count, truncated: optional(flag) })),
  truncated: optional(flag),
};
const usage: Fields<Usage> = {
  run: nullable(run),
  tokens: defaulted(
    object<Tokens>({ input: tokenCount, output: tokenCount, cache_read: tokenCount, cache_write: tokenCount }),
    { input: 0, output: 0, cache_read: 0, cache_write: 0 },
  ),
  cost: optional(cost),
  context: optional(context),
};
const complete: Fields<Complete> = {
  run,
  started: flag,
  success: flag,
  aborted: flag,
  interrupted: flag,
  exit_code: exitCode,
  signal: nullable(text),
  stop_reason: nullable(text),
  conversation: nullable(text),
  error: optional(object<RunError>({ code: text, message: text, retry_at: optional(text) })),
};

const known = tagged<Exclude<AgentEvent, { type: "unknown" }>>({
  started: { epoch, pid: u32, version: text },
  repaired: { epoch },
  prompt: { run, ...source, text, attachments: defaulted(list(text), []) },
  run_started: { run, cause: oneOfOrUnknown("prompt", "agent") },
  text: delta,
  thinking: delta,
  tool_call: toolCall,
  tool_update: toolCall,
  plan: { run: nullable(run), entries: anything, truncated: optional(flag) },
  approval_requested: { approval: openApproval },
  approval_resolved: {
    approval: approvalId,
    outcome: oneOfOrUnknown("allowed", "denied", "withdrawn", "aborted", "lost", "expired"),
    option: optional(text),
    reason: optional(text),
    command: attempt(text),
    digest: attempt(text),
    by: attempt(text),
  },
  abort_requested: { run, ...source, queue: optional(flag) },
  steered: { run, ...source, text },
  set: {
    mode: optional(text),
    model: optional(text),
    option: optional(object<OptionValue>({ id: text, value: text })),
    ...source,
  },
  usage,
  config: agentConfigFields,
  conversation: { id: text },
  title: { title: text },
  notice: { level: oneOfOrUnknown("debug", "info", "warning", "error"), text },
  raw: { source: text, message: anything, truncated: optional(flag) },
  complete,
  degraded: { error: text },
  exit: { code: exitCode, signal: nullable(text) },
});
const readKnown = attempt(known);
