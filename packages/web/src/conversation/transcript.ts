/**
 * What a conversation shows, derived from its events alone: prompts, texts, tool calls and ends of runs, in the order of
 * reading. A plain module: it knows neither components nor connections.
 *
 * The records are the truth. Newer ones are folded in one by one; older ones, which can begin a text or a tool call that is
 * shown already, lead to a new fold of all.
 */
import type {
  AgentEvent,
  AgentRecord,
  Approval,
  Complete,
  Level,
  OptionValue,
  Outcome,
  ToolBlob,
  ToolCall,
  Used,
} from "@bowline/client";
import { addUsed } from "@bowline/client/core";

/** An element of the transcript. Items are values: one that changes is replaced by another with the same key. */
export type Item =
  | PromptItem
  | TextItem
  | ToolItem
  | ApprovalItem
  | SteerItem
  | SettingItem
  | EndItem
  | NoticeItem
  | PlanItem
  | LifeItem;

interface Place {
  /** Stays the same when the item changes, or older events are loaded. */
  readonly key: string;
  /** The number of the event that it begins with. */
  readonly seq: number;
  /** When that was recorded, RFC 3339 UTC. */
  readonly at: string;
}

export interface PromptItem extends Place {
  readonly kind: "prompt";
  readonly run: string;
  /** The id of the command. */
  readonly command: string;
  readonly text: string;
  readonly attachments: readonly string[];
  readonly by: string;
  /** The run ended before the agent got the prompt. */
  readonly unstarted: boolean;
}

/** What the agent writes or thinks. */
export interface TextItem extends Place {
  readonly kind: "text" | "thinking";
  readonly text: string;
  /** More of it may follow. */
  readonly open: boolean;
}

export interface ToolItem extends Place {
  readonly kind: "tool";
  readonly run: string | null;
  readonly call: string;
  readonly name: string;
  /** The kind of tool: `read`, `edit`, `execute` and others. */
  readonly tool: string;
  readonly title: string;
  readonly status: ToolStatus;
  readonly input: unknown;
  readonly content: unknown;
  readonly locations: unknown;
  readonly blob: ToolBlob | undefined;
  readonly truncated: boolean;
  /** When it ended, RFC 3339 UTC. */
  readonly endedAt: string | undefined;
  /** What a sub-agent did in this call. */
  readonly children: readonly Item[];
}

/** `stopped`: the run ended while the tool was running. */
export type ToolStatus = "pending" | "running" | "done" | "failed" | "stopped";

/** An approval that was closed. Open ones are not part of the transcript. */
export interface ApprovalItem extends Place {
  readonly kind: "approval";
  readonly id: string;
  /** Undefined if the request is in an older event that is not loaded. */
  readonly approval: Approval | undefined;
  readonly outcome: Outcome;
  readonly option: string | undefined;
  readonly reason: string | undefined;
  readonly by: string | undefined;
}

/** Instructions for a run that was in the agent. */
export interface SteerItem extends Place {
  readonly kind: "steer";
  readonly text: string;
  readonly by: string;
}

export interface SettingItem extends Place {
  readonly kind: "setting";
  readonly mode: string | undefined;
  readonly model: string | undefined;
  readonly option: OptionValue | undefined;
  readonly by: string;
}

export interface EndItem extends Place {
  readonly kind: "end";
  readonly complete: Complete;
  /** When the agent got the prompt, if that is loaded. */
  readonly startedAt: string | undefined;
  readonly usage: Used | undefined;
}

export interface NoticeItem extends Place {
  readonly kind: "notice";
  readonly level: Level;
  readonly text: string;
}

/** The agent's list of steps, as it was at the end of the run. */
export interface PlanItem extends Place {
  readonly kind: "plan";
  readonly steps: readonly PlanStep[];
}

/** A change in the life of the session. */
export interface LifeItem extends Place {
  readonly kind: "life";
  readonly change: "restarted" | "repaired" | "ended" | "degraded";
}

export interface PlanStep {
  readonly text: string;
  readonly status: "pending" | "running" | "done";
}

/** A mutable place in the tree, and the value that was last made of it. */
interface Node {
  item: Item;
  children: Node[];
  parent: Node | undefined;
  /** Undefined after a change of the node or of one below it. */
  value: Item | undefined;
}

/** What is known of a run that has begun. */
interface Run {
  startedAt: string | undefined;
  usage: Used | undefined;
}

export class Transcript {
  #records: AgentRecord[] = [];
  #top: Node[] = [];
  /** By the key of the text. */
  readonly #texts = new Map<string, Node>();
  /** The latest tool call with each id: an agent that was restarted may use an id again. */
  readonly #tools = new Map<string, Node>();
  /** Accepted prompts that the agent did not get yet, in the order in which it will. */
  readonly #waiting = new Map<string, PromptItem>();
  /** Requests that are not closed. */
  readonly #approvals = new Map<string, Approval>();
  readonly #runs = new Map<string, Run>();
  /** The ids of the commands that the events record. */
  readonly #commands = new Set<string>();
  /** The steps of the run that is in the agent. */
  #plan: { readonly run: string | null; readonly steps: readonly PlanStep[] } | undefined;
  #items: readonly Item[] | undefined;

  /** All items, oldest first. The array is another one after each change. */
  get items(): readonly Item[] {
    this.#items ??= this.#top.map(valueOf);
    return this.#items;
  }

  /** Accepted prompts that the agent did not get yet. */
  get waiting(): readonly PromptItem[] {
    return [...this.#waiting.values()];
  }

  /** The steps of the run that is in the agent; empty if it has listed none. */
  get plan(): readonly PlanStep[] {
    return this.#plan?.steps ?? [];
  }

  get size(): number {
    return this.#records.length;
  }

  /** The number of the oldest event. */
  get start(): number | undefined {
    const first = this.#records[0];
    return first && (first.from ?? first.seq);
  }

  /** Whether the event that records this command is loaded. */
  hasCommand(id: string): boolean {
    return this.#commands.has(id);
  }

  /** Replaces everything. */
  reset(records: readonly AgentRecord[]): void {
    this.#records = [];
    this.#top = [];
    this.#texts.clear();
    this.#tools.clear();
    this.#waiting.clear();
    this.#approvals.clear();
    this.#runs.clear();
    this.#commands.clear();
    this.#plan = undefined;
    this.append(records);
  }

  /** Adds events that come after all others. */
  append(records: readonly AgentRecord[]): void {
    for (const record of records) {
      this.#keep(record);
      this.#fold(record);
    }
    this.#items = undefined;
  }

  /** Adds events that come before all others. */
  prepend(records: readonly AgentRecord[]): void {
    this.reset([...records, ...this.#records]);
  }

  /**
   * Drops the oldest events, if there are more than `most`, and returns the number of the oldest one that is left. About half
   * of them go, so that this is rare. What is left begins with a run, if possible, so that no text is cut; prompts that wait
   * stay.
   */
  trim(most: number): number | undefined {
    const records = this.#records;
    if (records.length <= most) return undefined;
    const earliest = records.length - Math.ceil(most / 2);
    const begins = ({ event }: AgentRecord) => event.type === "run_started" || event.type === "prompt";
    const boundary = records.findIndex((record, i) => i >= earliest && begins(record));
    const waiting = [...this.#waiting.values()][0]?.seq ?? Infinity;
    const from = records.findIndex((record, i) => i === (boundary < 0 ? earliest : boundary) || record.seq >= waiting);
    if (from <= 0) return undefined;
    this.reset(records.slice(from));
    return this.start;
  }

  /** Keeps pieces of one text that follow each other as one record: a run at work may write a hundred a second. */
  #keep(record: AgentRecord): void {
    const last = this.#records.at(-1);
    const both = last && joined(last, record);
    if (both) this.#records[this.#records.length - 1] = both;
    else this.#records.push(record);
  }

  #fold(record: AgentRecord): void {
    const { event } = record;
    if ("command" in event && event.command !== undefined) this.#commands.add(event.command);
    switch (event.type) {
      case "prompt":
        return this.#addPrompt(record, event);
      case "run_started":
        this.#runOf(event.run).startedAt = record.at;
        return this.#placePrompt(event.run, false);
      case "text":
      case "thinking":
        return this.#addText(record, event);
      case "tool_call":
      case "tool_update":
        return this.#addTool(record, event);
      case "plan":
        this.#plan = { run: event.run, steps: planSteps(event.entries) };
        return;
      case "approval_requested":
        this.#approvals.set(event.approval.id, event.approval);
        return;
      case "approval_resolved":
        return this.#closeApproval(record, event);
      case "steered":
        return this.#add(record, { kind: "steer", text: event.text, by: event.by });
      case "set": {
        const { mode, model, option, by } = event;
        return this.#add(record, { kind: "setting", mode, model, option, by });
      }
      case "usage": {
        if (event.run === null) return;
        const run = this.#runOf(event.run);
        run.usage = addUsed(run.usage, event);
        return;
      }
      case "notice":
        if (event.level !== "debug") this.#add(record, { kind: "notice", level: event.level, text: event.text });
        return;
      case "complete":
        return this.#endRun(record, event);
      case "started":
        // The first one is the beginning of the conversation.
        if (record.seq > 0) this.#add(record, { kind: "life", change: "restarted" });
        return;
      case "repaired":
        return this.#add(record, { kind: "life", change: "repaired" });
      case "degraded":
        return this.#add(record, { kind: "life", change: "degraded" });
      case "exit":
        return this.#add(record, { kind: "life", change: "ended" });
      case "abort_requested":
      case "config":
      case "conversation":
      case "title":
      case "raw":
      case "unknown":
        return;
    }
  }

  #addPrompt(record: AgentRecord, event: Extract<AgentEvent, { type: "prompt" }>): void {
    const { run, command, text, attachments, by } = event;
    const { seq, at } = record;
    const key = `prompt ${run}`;
    this.#waiting.set(run, { kind: "prompt", key, seq, at, run, command, text, attachments, by, unstarted: false });
  }

  /** Moves a prompt to where its run begins: what came in the meantime belongs to the run before. */
  #placePrompt(run: string, unstarted: boolean): void {
    const prompt = this.#waiting.get(run);
    if (!prompt) return;
    this.#waiting.delete(run);
    this.#put({ ...prompt, unstarted }, undefined);
  }

  #addText(record: AgentRecord, event: Extract<AgentEvent, { type: "text" | "thinking" }>): void {
    const key = `${event.type} ${event.run ?? ""} ${event.parent ?? ""} ${event.block}`;
    const node = this.#texts.get(key);
    if (node && (node.item.kind === "text" || node.item.kind === "thinking")) {
      change(node, { ...node.item, text: node.item.text + event.delta });
      return;
    }
    const { at, seq, from = seq } = record;
    const item: TextItem = { kind: event.type, key, seq: from, at, text: event.delta, open: true };
    this.#texts.set(key, this.#put(item, event.parent));
  }

  #addTool(record: AgentRecord, event: Extract<AgentEvent, { type: "tool_call" | "tool_update" }>): void {
    const node = this.#tools.get(event.call);
    const known = node?.item.kind === "tool" ? node.item : undefined;
    const isAnother = known?.endedAt !== undefined && event.type === "tool_call" && known.run !== event.run;
    const before = known && !isAnother ? known : newTool(record, event);
    const status = event.status === undefined ? before.status : toolStatus(event.status);
    const ended = status !== "pending" && status !== "running";
    const item: ToolItem = {
      ...before,
      name: event.name ?? before.name,
      tool: event.kind ?? before.tool,
      title: event.title ?? before.title,
      status,
      input: event.input === undefined ? before.input : event.input,
      content: event.content === undefined ? before.content : event.content,
      locations: event.locations === undefined ? before.locations : event.locations,
      // The whole output belongs to the content of the same event.
      blob: event.content === undefined ? before.blob : event.blob,
      truncated: (event.content === undefined && before.truncated) || event.truncated === true,
      endedAt: ended ? (before.endedAt ?? record.at) : undefined,
    };
    if (node && before === known) change(node, item);
    else this.#tools.set(event.call, this.#put(item, event.parent));
  }

  #closeApproval(record: AgentRecord, event: Extract<AgentEvent, { type: "approval_resolved" }>): void {
    const { approval: id, outcome, option, reason, by } = event;
    const approval = this.#approvals.get(id);
    this.#approvals.delete(id);
    this.#add(record, { kind: "approval", id, approval, outcome, option, reason, by });
  }

  #endRun(record: AgentRecord, event: Extract<AgentEvent, { type: "complete" }>): void {
    const { type: _, ...complete } = event;
    this.#placePrompt(event.run, true);
    const run = this.#runs.get(event.run);
    this.#runs.delete(event.run);
    if (this.#plan && (this.#plan.run ?? event.run) === event.run) {
      this.#add(record, { kind: "plan", steps: this.#plan.steps });
      this.#plan = undefined;
    }
    // Only one run is in the agent at a time. Tools that go on in the background report their end.
    if (event.started) for (const node of lastNodes(this.#top)) close(node, record.at);
    this.#add(record, { kind: "end", complete, startedAt: run?.startedAt, usage: run?.usage });
  }

  #runOf(id: string): Run {
    let run = this.#runs.get(id);
    if (!run) this.#runs.set(id, (run = { startedAt: undefined, usage: undefined }));
    return run;
  }

  /** Adds an item that one event makes. */
  #add(record: AgentRecord, item: DistributedOmit<Item, keyof Place>): void {
    this.#put({ ...item, key: `${item.kind} ${record.seq}`, seq: record.seq, at: record.at }, undefined);
  }

  /** Adds an item below the tool call `parent`, if that is loaded; else at the top. */
  #put(item: Item, parent: string | undefined): Node {
    const above = parent === undefined ? undefined : this.#tools.get(parent);
    const node: Node = { item, children: [], parent: above, value: undefined };
    const siblings = above?.children ?? this.#top;
    const previous = siblings.at(-1);
    if (previous) closeText(previous);
    siblings.push(node);
    if (above) change(above, above.item);
    return node;
  }
}

type DistributedOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** Two pieces of one text as one record; undefined if they are something else. */
function joined(last: AgentRecord, next: AgentRecord): AgentRecord | undefined {
  const [a, b] = [last.event, next.event];
  if ((a.type !== "text" && a.type !== "thinking") || (b.type !== "text" && b.type !== "thinking")) return undefined;
  const isSame = a.type === b.type && a.run === b.run && a.block === b.block && a.parent === b.parent;
  if (!isSame || (next.from ?? next.seq) !== last.seq + 1) return undefined;
  const event = { ...a, delta: a.delta + b.delta };
  return { seq: next.seq, from: last.from ?? last.seq, at: last.at, event };
}

function newTool({ seq, at }: AgentRecord, { run, call }: ToolCall): ToolItem {
  return {
    kind: "tool",
    key: `tool ${run ?? ""} ${call}`,
    seq,
    at,
    run,
    call,
    name: "",
    tool: "other",
    title: "",
    status: "pending",
    input: undefined,
    content: undefined,
    locations: undefined,
    blob: undefined,
    truncated: false,
    endedAt: undefined,
    children: [],
  };
}

function valueOf(node: Node): Item {
  node.value ??=
    node.item.kind === "tool" && node.children.length > 0
      ? { ...node.item, children: node.children.map(valueOf) }
      : node.item;
  return node.value;
}

function change(node: Node, item: Item): void {
  node.item = item;
  for (let above: Node | undefined = node; above; above = above.parent) above.value = undefined;
}

/** The nodes since the last end of a run, and all below them. */
function* lastNodes(siblings: readonly Node[]): Generator<Node> {
  for (let i = siblings.length - 1; i >= 0; i--) {
    const node = siblings[i]!;
    if (node.item.kind === "end") return;
    yield node;
    yield* lastNodes(node.children);
  }
}

function close(node: Node, at: string): void {
  closeText(node);
  const { item } = node;
  if (item.kind === "tool" && (item.status === "pending" || item.status === "running"))
    change(node, { ...item, status: "stopped", endedAt: at });
}

function closeText(node: Node): void {
  const { item } = node;
  if ((item.kind === "text" || item.kind === "thinking") && item.open) change(node, { ...item, open: false });
}

function toolStatus(status: string): ToolStatus {
  switch (status) {
    case "pending":
      return "pending";
    case "completed":
      return "done";
    case "failed":
      return "failed";
    default:
      // Agents may have other words for what goes on.
      return "running";
  }
}

/** Reads the steps of a plan, whose shape is the agent's. */
function planSteps(entries: unknown): PlanStep[] {
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry: unknown) => {
    const { content, status } = Object(entry) as { content?: unknown; status?: unknown };
    if (typeof content !== "string") return [];
    const known = status === "completed" ? "done" : status === "in_progress" ? "running" : "pending";
    return [{ text: content, status: known }];
  });
}
