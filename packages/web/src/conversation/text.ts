/** Text for the user about conversations. */
import type { Used } from "@bowline/client";
import { outcomeText } from "../approvals/answer.ts";
import { callerText } from "../session/text.ts";
import type { ApprovalItem, EndItem, LifeItem, SettingItem, ToolItem, ToolStatus } from "./transcript.ts";

/** A length of time, in words: `8 s`, `2 min 5 s`, `1 h 4 min`. */
export function durationText(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1000), 0);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The time between two points in RFC 3339; empty if one is missing, or less than a second passed. */
export function elapsedText(from: string | undefined, to: string | undefined): string {
  const ms = Date.parse(to ?? "") - Date.parse(from ?? "");
  return ms >= 1000 ? durationText(ms) : "";
}

/** A time of day, in the user's language; with the date if it is another day than `now`. */
export function timeText(at: string, now: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  const sameDay = time.toDateString() === new Date(now).toDateString();
  return time.toLocaleString(undefined, {
    ...(sameDay ? {} : { month: "short", day: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** Money, with as many digits as small amounts need. */
export function costText(dollars: number): string {
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`;
}

/** A number of tokens: `950`, `12.3k`, `1.2M`. */
export function tokensText(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  return tokens < 999_950 ? `${trimZero((tokens / 1000).toFixed(1))}k` : `${trimZero((tokens / 1e6).toFixed(1))}M`;
}

function trimZero(number: string): string {
  return number.replace(/\.0$/, "");
}

/** What was used, for one line: tokens, cost and how full the context is. */
export function usageText({ tokens, cost, context }: Used): string {
  const all = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
  const full = context && context.size > 0 ? `${Math.round((100 * context.used) / context.size)}% of context` : "";
  return [all > 0 ? `${tokensText(all)} tokens` : "", cost === undefined ? "" : costText(cost), full]
    .filter(Boolean)
    .join(" · ");
}

/** A number of bytes: `950 bytes`, `12 KB`, `3.4 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${trimZero((bytes / (1024 * 1024)).toFixed(1))} MB`;
}

export const TOOL_STATUS: Readonly<Record<ToolStatus, string>> = {
  pending: "Waiting",
  running: "Running",
  done: "Done",
  failed: "Failed",
  stopped: "Stopped",
};

/** One line about a tool call. */
export function toolTitle({ title, name, tool }: ToolItem): string {
  return title || name || tool;
}

/** How a run ended, in words. */
export function endText({ complete, startedAt, at }: EndItem): string {
  const time = elapsedText(startedAt, at);
  const after = time ? ` after ${time}` : "";
  const { success, aborted, interrupted, started, error, stop_reason } = complete;
  if (success) return time ? `Finished in ${time}` : "Finished";
  if (aborted) return started ? `Stopped${after}` : "Withdrawn";
  if (!started) return `Not started${error ? `: ${error.message}` : ""}`;
  if (interrupted) return `Interrupted${after}: the session ended`;
  if (error) return `Failed${after}: ${error.message}`;
  return `Ended early${after}${stop_reason ? `: ${stop_reason}` : ""}`;
}

/** When it is worth trying again, if the agent has said so; else empty. */
export function retryText({ complete, at }: EndItem): string {
  const retryAt = complete.error?.retry_at;
  const time = retryAt === undefined ? "" : timeText(retryAt, Date.parse(at));
  return time && `Works again from ${time}.`;
}

/** Whether a run's end is bad news. */
export function isFailure({ complete }: EndItem): boolean {
  return !complete.success && !complete.aborted;
}

/** How an approval ended, by whom, and which lasting option was chosen. */
export function approvalText({ outcome, approval, option, by }: ApprovalItem): string {
  const chosen = approval?.options.find(({ id }) => id === option);
  const always = chosen?.kind === "allow_always" || chosen?.kind === "reject_always" ? ` (${chosen.label})` : "";
  return `${outcomeText(outcome, by, approval?.kind ?? "unknown")}${always}`;
}

export function settingText({ mode, model, option, by }: SettingItem): string {
  const changes = [
    mode === undefined ? "" : `Mode set to ${mode}`,
    model === undefined ? "" : `Model set to ${model}`,
    option === undefined ? "" : `${option.id} set to ${option.value}`,
  ].filter(Boolean);
  return `${changes.join(", ")} by ${callerText(by)}`;
}

export const LIFE_CHANGES: Readonly<Record<LifeItem["change"], string>> = {
  restarted: "Session started again",
  repaired: "The end of this conversation was damaged and has been repaired. Its last events may be missing.",
  degraded: "The disk was full for a while. Nothing is missing.",
  ended: "Session ended",
};
