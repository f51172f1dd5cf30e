/**
 * What this page has sent and the transcript does not show yet, and the one line that says what the session does. Both are
 * derived from the queue of commands and the fold of the events; a plain module.
 */
import type { Command, ConversationState, Failure, PostEntry, PostState, SendError } from "@bowline/client";
import type { Transcript } from "./transcript.ts";

/** A prompt or a steer that is on its way. */
export interface Message {
  /** The id of the command. */
  readonly id: string;
  readonly type: "prompt" | "steer";
  readonly text: string;
  readonly attachments: readonly string[];
  readonly state: PostState;
}

/** The messages of a session that are not in its transcript, in the order in which they are sent. */
export function messagesOf(
  entries: readonly PostEntry[],
  session: string,
  transcript: Pick<Transcript, "hasCommand" | "start">,
): Message[] {
  return entries.flatMap((entry) => {
    const { id, session: to, command, state } = entry;
    if (to !== session || transcript.hasCommand(id) || isRecorded(entry, transcript)) return [];
    const type = command?.type;
    if (!command || (type !== "prompt" && type !== "steer")) return [];
    return [{ id, type, text: textOf(command), attachments: attachmentsOf(command), state }];
  });
}

/** Whether an entry was delivered, and the transcript has its event, or only newer ones. */
export function isRecorded({ id, state }: PostEntry, transcript: Pick<Transcript, "hasCommand" | "start">): boolean {
  if (state.name !== "delivered") return false;
  return transcript.hasCommand(id) || (state.how === "accepted" && state.seq < (transcript.start ?? 0));
}

/** Commands besides messages that failed, and of which nothing else tells: aborts, answers and settings. */
export function failedCommands(entries: readonly PostEntry[], session: string): PostEntry[] {
  return entries.filter(
    ({ session: to, command, state }) =>
      to === session && state.name === "failed" && command?.type !== "prompt" && command?.type !== "steer",
  );
}

/** Whether an entry is about to stop a run. */
export function isAbortOf({ session: to, command, state }: PostEntry, session: string, run: string): boolean {
  const underWay = state.name !== "failed" && !(state.name === "delivered" && state.how !== "accepted");
  return to === session && command?.type === "abort" && command["run"] === run && underWay;
}

/** One line about what the session does now. */
export interface ActivityLine {
  readonly text: string;
  /** Since when, in milliseconds since 1970; `undefined` if no time is shown. */
  readonly since: number | undefined;
  /** The run that can be stopped. */
  readonly stop: string | undefined;
}

/**
 * What the session does; `undefined` if nothing. An open run comes from the events. Before the event of its prompt has
 * arrived, a message stands for it, from the moment of sending. `isResuming`: its session is being started again for it.
 */
export function activityOf(
  state: ConversationState | undefined,
  messages: readonly Message[],
  isResuming: (message: string) => boolean = () => false,
): ActivityLine | undefined {
  const open = state?.activity;
  if (open) {
    const since = Date.parse(open.started_at);
    const isAsked = state.approvals.some(({ run }) => run === open.run);
    return {
      text: isAsked ? "Waiting for your answer" : open.text,
      since: Number.isFinite(since) ? since : undefined,
      stop: open.can_interrupt ? open.run : undefined,
    };
  }
  for (const { id, type, state } of messages) {
    if (type !== "prompt") continue;
    const isHeld = state.name === "waiting" && state.why === "held";
    if (isResuming(id) && !isHeld) return { text: "Resuming the session", since: undefined, stop: undefined };
    const text = sendingText(state);
    if (text !== undefined) return { text, since: undefined, stop: undefined };
  }
  return undefined;
}

function sendingText(state: PostState): string | undefined {
  switch (state.name) {
    case "waiting":
      if (state.why === "offline") return "Waiting for the network";
      if (state.why === "login") return "Waiting for your login";
      return state.why === "held" ? undefined : "Sending";
    case "sending":
    case "retrying":
      return state.tries > 0 ? "Sending again" : "Sending";
    case "delivered":
      return state.how === "accepted" ? "Waiting for the agent" : undefined;
    case "failed":
      return undefined;
  }
}

/** How far a message has come, in words. `seconds` are left until the next try. */
export function messageText({ state, type }: Message, seconds: number): string {
  switch (state.name) {
    case "waiting":
      switch (state.why) {
        case "turn":
          return "Waiting to be sent";
        case "held":
          return "Waiting for the failed message before it";
        case "login":
          return "Not sent: log in again";
        case "offline":
          return "Not sent yet: no network";
      }
      break;
    case "sending":
      return state.tries > 0 ? `Sending, try ${state.tries + 1}` : "Sending";
    case "retrying":
      return `Not sent yet${state.message ? `: ${state.message}` : ""}. Next try ${seconds > 0 ? `in ${seconds} s` : "now"}`;
    case "delivered":
      if (state.how === "accepted") return "Delivered";
      return type === "steer" ? "Not delivered: the run could not take it" : "Not delivered";
    case "failed":
      return failureText(state);
  }
  return "";
}

/** Why a command failed, as a sentence without its last period. */
export function failureText(failure: Failure): string {
  const because = failure.message ? `: ${failure.message}` : "";
  switch (failure.reason) {
    case "refused":
      return `Not sent${because || ": the server refused it"}`;
    case "session_gone":
      return "Not sent: the session has ended";
    case "no_space":
      return `Not sent${because || ": the disk of the server is full"}`;
    case "expired":
      return `Not sent within ten minutes${because}`;
    case "old":
      return "Not sent: written more than ten minutes ago";
    case "unreadable":
      return "This message was written by another version and cannot be sent";
  }
}

/** Why a text stays in the composer. */
export function refusalText(why: SendError): string {
  switch (why) {
    case "session_full":
    case "full":
      return "Too many messages are waiting. Send or discard some of them first.";
    case "too_many_bytes":
      return "The messages that wait are too long together. Send or discard some of them first.";
    case "too_long":
      return "This message is too long. The limit is 256 KB; attach longer texts as files.";
    case "invalid":
    case "id_in_use":
      return "This message cannot be sent.";
  }
}

function textOf(command: Command): string {
  return typeof command["text"] === "string" ? command["text"] : "";
}

function attachmentsOf(command: Command): string[] {
  const list = command["attachments"];
  return Array.isArray(list) ? list.filter((id): id is string => typeof id === "string") : [];
}
