/**
 * What was sent and the agent has not got yet: what the user can do about each message, whether a withdrawal has succeeded, and
 * the wording. A plain module.
 */
import type { Approval, Command, OpenRun, PostEntry, PostState } from "@bowline/client";
import { failedCommands, failureText, type Message } from "../messages.ts";
import type { Item, PromptItem } from "../transcript.ts";

/** What the user can do about a message that was sent and is not in the transcript. */
export type MessageAction =
  /** Send a failed message again. */
  | "again"
  /** Try now, not after the wait. */
  | "try"
  /** Restart the session, then send. */
  | "resume"
  /** Send what could not be added to a run as a message of its own. */
  | "prompt"
  /** Take it back into the composer. */
  | "edit"
  | "discard";

export const ACTION_LABELS: Readonly<Record<MessageAction, string>> = {
  again: "Send again",
  try: "Try now",
  resume: "Resume and send",
  prompt: "Send as a message",
  edit: "Edit",
  discard: "Discard",
};

/**
 * What can be done about a message; the first action is the obvious one. What was sent and has no answer cannot be edited,
 * because it may have arrived. `stuck` is whether a message before it cannot be sent at the moment.
 */
export function messageActions({ state, type }: Message, stuck: boolean): readonly MessageAction[] {
  switch (state.name) {
    case "waiting":
      // Otherwise it is sent within a moment.
      return state.why !== "turn" || stuck ? ["edit", "discard"] : [];
    case "sending":
      // As while it waits for the next try, so that the buttons stay where they are.
      return state.tries > 0 ? ["try", "discard"] : [];
    case "retrying":
      return ["try", "discard"];
    case "delivered":
      if (state.how === "accepted") return [];
      return type === "steer" ? ["prompt", "edit", "discard"] : ["edit", "discard"];
    case "failed":
      if (state.reason === "session_gone") return ["resume", "edit", "discard"];
      return state.reason === "unreadable" ? ["discard"] : ["again", "edit", "discard"];
  }
}

/** Whether a message keeps those after it from being sent. */
export function isStuck({ state }: Pick<Message, "state">): boolean {
  return state.name === "failed" || state.name === "retrying" || (state.name === "sending" && state.tries > 0);
}

/** Whether a message had no effect, and will not have one by itself. */
export function isUnsent(state: PostState): boolean {
  return state.name === "failed" || (state.name === "delivered" && state.how !== "accepted");
}

/**
 * What a screen reader says about the messages; empty if all goes well. It stays the same over retries and countdowns, so that
 * it is said once.
 */
export function announcementOf(messages: readonly Message[]): string {
  const failed = messages.filter(({ state }) => isUnsent(state)).length;
  if (failed > 0) return failed === 1 ? "A message was not sent." : `${failed} messages were not sent.`;
  const why = (wanted: string) => messages.some(({ state }) => state.name === "waiting" && state.why === wanted);
  if (why("login")) return "Your message waits for a login.";
  if (why("offline")) return "Your message waits for the network.";
  return messages.some(isStuck) ? "Your message could not be sent yet. It is tried again." : "";
}

/** How far a prompt has come that the session has accepted. `isNext` is whether no run is before it. */
export function waitingText(isNext: boolean): string {
  return isNext ? "Waiting for the agent" : "Queued";
}

/** What has become of a withdrawal. `unknown`: the prompt is not loaded any more. */
export type Withdrawal = "pending" | "withdrawn" | "started" | "failed" | "unknown";

/**
 * What has become of the withdrawal of a run. Only the end of a run that was not started makes it certain: until then, the
 * agent may get the prompt. `abort` is the entry that withdraws it, as long as there is one.
 */
export function withdrawalOf(
  run: string,
  abort: Pick<PostEntry, "state"> | undefined,
  shown: {
    readonly waiting: readonly PromptItem[];
    readonly items: readonly Item[];
    readonly runs: readonly OpenRun[];
  },
): Withdrawal {
  if (shown.waiting.some((prompt) => prompt.run === run)) {
    return abort?.state.name === "failed" ? "failed" : "pending";
  }
  const prompt = shown.items.findLast((item) => item.kind === "prompt" && item.run === run);
  if (prompt?.kind === "prompt") return prompt.unstarted ? "withdrawn" : "started";
  return shown.runs.some((open) => open.run === run && open.started) ? "started" : "unknown";
}

/** Agents that do not take instructions during a run. Nothing announces which do; others refuse what they cannot take. */
const CANNOT_STEER: readonly (string | undefined)[] = [undefined, "gemini", "opencode", "qwen", "cursor"];

/** The run that more instructions can be given to; undefined if there is none, or the agent has refused some for it. */
export function steerableRun(
  agent: string | undefined,
  runs: readonly OpenRun[],
  entries: readonly PostEntry[],
  session: string,
): string | undefined {
  const open = runs[0];
  if (!open?.started || open.aborted || CANNOT_STEER.includes(agent)) return undefined;
  const refused = entries.some(
    ({ session: to, command, state }) =>
      to === session && command?.type === "steer" && command["run"] === open.run && isUnsent(state),
  );
  return refused ? undefined : open.run;
}

/** A command besides messages that had no effect, in words. */
export interface CommandLine {
  readonly id: string;
  readonly what: string;
  readonly why: string;
  readonly canSendAgain: boolean;
}

/**
 * The commands of a session, besides messages, that had no effect and of which nothing else tells. The card of an open approval
 * tells of its answer.
 */
export function commandLines(
  entries: readonly PostEntry[],
  session: string,
  approvals: readonly Pick<Approval, "id">[],
): CommandLine[] {
  const failed = failedCommands(entries, session).flatMap(({ id, command, state }) => {
    if (state.name !== "failed" || (command && answersOne(command, approvals))) return [];
    // The session is started again by messages only.
    const canSendAgain = command !== undefined && state.reason !== "session_gone";
    return [{ id, what: commandText(command), why: failureText(state), canSendAgain }];
  });
  const settled = entries.flatMap(({ id, session: to, command, state }) => {
    if (to !== session || command?.type !== "set" || state.name !== "delivered" || state.how !== "not_running")
      return [];
    const why = "Not changed: the agent is not running. Send a message first";
    return [{ id, what: commandText(command), why, canSendAgain: false }];
  });
  return [...failed, ...settled];
}

function answersOne({ type, approval }: Command, approvals: readonly Pick<Approval, "id">[]): boolean {
  return (type === "approve" || type === "deny" || type === "answer") && approvals.some(({ id }) => id === approval);
}

function commandText(command: Command | undefined): string {
  switch (command?.type) {
    case "abort":
      return "Stop";
    case "approve":
      return "Your approval";
    case "deny":
      return "Your refusal";
    case "answer":
      return "Your answer";
    case "set":
      return settingText(command);
    default:
      return "Command";
  }
}

function settingText(command: Command): string {
  const { mode, model, option } = command as { mode?: unknown; model?: unknown; option?: unknown };
  if (typeof mode === "string") return `Mode ${mode}`;
  if (typeof model === "string") return `Model ${model}`;
  const { id, value } = Object(option) as { id?: unknown; value?: unknown };
  return typeof id === "string" && typeof value === "string" ? `${id} ${value}` : "Setting";
}
