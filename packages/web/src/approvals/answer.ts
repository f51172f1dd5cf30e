/** The answers that this page gives to approvals: their commands, and how far each has come. A plain module. */
import type { Approval, ApprovalOption, Command, Failure, Outcome, PostEntry, SendError } from "@bowline/client";
import { callerText } from "../session/text.ts";

/** Names an approval among those of all sessions. */
export function approvalKey(session: string, approval: string): string {
  return `${session}/${approval}`;
}

/** The command that chooses an option. */
export function optionCommand(approval: Approval, option: ApprovalOption): Command {
  if (option.kind === "allow_once" || option.kind === "allow_always")
    return { type: "approve", approval: approval.id, option: option.id };
  // Without an option, the session rejects with the first one for this once. Older ones know no other way.
  const byDefault = approval.options.find(({ kind }) => kind === "reject_once");
  return {
    type: "deny",
    approval: approval.id,
    ...(option.id === byDefault?.id && option.kind === "reject_once" ? {} : { option: option.id }),
  };
}

/** The command that denies an approval, or declines to answer a question. */
export function denyCommand(approval: Approval, reason = ""): Command {
  return { type: "deny", approval: approval.id, ...(reason.trim() ? { reason: reason.trim() } : {}) };
}

/** The command that answers questions. */
export function answerCommand(approval: Approval, answers: Readonly<Record<string, readonly string[]>>): Command {
  return { type: "answer", approval: approval.id, answers };
}

/** The answer to an approval that this page has given. */
export interface Answer {
  /** As it was last seen. */
  readonly entry: PostEntry;
  /** Whether it still is in the queue. What has left it was settled. */
  readonly queued: boolean;
}

/** Answers by the key of their approval. */
export type Answers = ReadonlyMap<string, Answer>;

/** How many answers are remembered after they have left the queue; the oldest ones are forgotten. */
export const MAX_ANSWERS = 256;

/**
 * The answers after a change of the queue. One that has left it stays, because the board may still list its approval; only one
 * that had failed is forgotten, because the user has discarded it.
 */
export function nextAnswers(before: Answers, entries: readonly PostEntry[]): Answers {
  const left = [...before].filter(([, { entry }]) => entry.state.name !== "failed").slice(-MAX_ANSWERS);
  const answers = new Map(left.map(([key, { entry }]): [string, Answer] => [key, { entry, queued: false }]));
  for (const entry of entries) {
    const key = answeredKey(entry);
    if (key === undefined) continue;
    const other = answers.get(key);
    if (entry.state.name === "failed" && other?.queued && other.entry.state.name !== "failed") continue;
    answers.set(key, { entry, queued: true });
  }
  return answers;
}

/** The key of the approval that a command answers; `undefined` if it is another command. */
export function answeredKey({ session, command }: PostEntry): string | undefined {
  if (!command || !["approve", "deny", "answer"].includes(command.type)) return undefined;
  const approval = command["approval"];
  return typeof approval === "string" ? approvalKey(session, approval) : undefined;
}

/**
 * How far an answer has come. While there is one, its card has no other buttons than those to send it again.
 *
 * - `sending`: also while it waits for the network; `retryAt` is the time of the next try.
 * - `failed`: nothing happens until the user decides; `again`: it can be sent again as it is.
 * - `closed`: the approval is.
 */
export type Progress =
  | { readonly name: "sending"; readonly text: string; readonly retryAt?: number }
  | { readonly name: "failed"; readonly text: string; readonly again: boolean }
  | { readonly name: "closed"; readonly text: string };

/** How far an answer has come, in words. */
export function progressOf({ entry, queued }: Answer, approval: Approval): Progress {
  const { state, command } = entry;
  const choice = choiceText(command, approval);
  if (!queued && state.name !== "delivered") return { name: "closed", text: answeredText(command, approval) };
  switch (state.name) {
    case "waiting":
      if (state.why === "login") return { name: "sending", text: `${choice}: waiting for your login` };
      if (state.why === "offline") return { name: "sending", text: `${choice}: waiting for the network` };
      return { name: "sending", text: `${choice}: sending…` };
    case "sending":
      return { name: "sending", text: `${choice}: sending${state.tries > 0 ? " again" : ""}…` };
    case "retrying": {
      const because = state.message && ` (${state.message})`;
      return { name: "sending", text: `${choice}: not sent yet${because}`, retryAt: state.at };
    }
    case "delivered":
      if (state.how === "already_answered")
        return { name: "closed", text: lateText(state.outcome ?? "unknown", state.by, approval.kind) };
      return { name: "closed", text: answeredText(command, approval) };
    case "failed":
      return {
        name: "failed",
        text: `${choice}: ${failureText(state)}`,
        again: state.reason !== "unreadable" && state.reason !== "session_gone",
      };
  }
}

/** What was chosen. */
function choiceText(command: Command | undefined, approval: Approval): string {
  const label = chosenLabel(command, approval);
  if (label) return `“${label}”`;
  if (command?.type === "answer") return "Your answer";
  if (command?.type === "approve") return "Allow";
  return approval.kind === "question" ? "Do not answer" : "Deny";
}

function answeredText(command: Command | undefined, approval: Approval): string {
  const label = chosenLabel(command, approval);
  if (command?.type === "answer") return "Answered";
  if (command?.type === "approve") return label ? `Allowed: ${label}` : "Allowed";
  if (approval.kind === "question") return "Not answered, as you chose";
  return label ? `Denied: ${label}` : "Denied";
}

function chosenLabel(command: Command | undefined, approval: Approval): string {
  const id = command?.["option"];
  return id === undefined ? "" : (approval.options.find((option) => option.id === id)?.label ?? "");
}

/** Why an answer failed. */
function failureText(failure: Failure): string {
  const because = failure.message ? ` (${failure.message})` : "";
  switch (failure.reason) {
    case "refused":
      return `refused${because}`;
    case "session_gone":
      return "not sent, because the session has ended";
    case "no_space":
      return `not sent, because the disk of the server is full${because}`;
    case "expired":
      return `not sent within ten minutes${because}`;
    case "old":
      return "not sent, because it was chosen more than ten minutes ago";
    case "unreadable":
      return "stored by another version, and cannot be sent";
  }
}

/** Why an answer was not taken into the queue. */
export function refusalText(why: SendError): string {
  switch (why) {
    case "session_full":
    case "full":
    case "too_many_bytes":
      return "Too many answers wait to be sent. Try again when some of them are sent.";
    case "too_long":
      return "This answer is too long. The limit is 256 KB.";
    case "invalid":
    case "id_in_use":
      return "This answer cannot be sent. Reload the page, then try again.";
  }
}

/** How an approval was closed, and by whom. */
export function outcomeText(outcome: Outcome, by: string | undefined, kind: Approval["kind"]): string {
  const caller = by === undefined ? "" : ` by ${callerText(by)}`;
  switch (outcome) {
    case "allowed":
      return `${kind === "question" ? "Answered" : "Allowed"}${caller}`;
    case "denied":
      return `${kind === "question" ? "Declined" : "Denied"}${caller}`;
    case "withdrawn":
      return "Withdrawn by the agent";
    case "aborted":
      return "Not needed any more: the run was stopped";
    case "lost":
      return "Not needed any more: the agent went on or ended";
    case "expired":
      return "Denied, because no answer came in time";
    case "unknown":
      return "Closed";
  }
}

/** What became of an approval that was closed before the answer of this page arrived. */
function lateText(outcome: Outcome, by: string | undefined, kind: Approval["kind"]): string {
  const text = outcomeText(outcome, by, kind);
  if (outcome === "aborted" || outcome === "lost") return text;
  return `Already ${text[0]?.toLowerCase()}${text.slice(1)}`;
}
