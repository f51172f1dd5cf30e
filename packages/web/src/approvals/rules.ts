/** What an approval offers, and what has to happen before a choice counts. A plain module. */
import type { Approval, ApprovalOption } from "@bowline/client";
import { isDestructive } from "./destructive.ts";

/** How an option looks: what is allowed once stands out, what rejects steps back. */
export type OptionTone = "primary" | "secondary" | "plain";

export interface ShownOption {
  readonly option: ApprovalOption;
  readonly tone: OptionTone;
  /** Whether it lets the agent do something. */
  readonly allows: boolean;
  /** Whether it has to be confirmed. */
  readonly confirm: boolean;
}

const ORDER = ["allow_once", "allow_always", "reject_once", "reject_always"] as const;

/**
 * The options that can be chosen: those that allow first, each kind in the agent's order. An option of an unknown kind cannot be
 * chosen, and an approval of an unknown kind can only be denied.
 */
export function shownOptions(approval: Approval, touch: boolean): ShownOption[] {
  if (approval.kind === "unknown" || approval.kind === "question") return [];
  return ORDER.flatMap((kind) => approval.options.filter((option) => option.kind === kind)).map((option) => {
    const allows = option.kind === "allow_once" || option.kind === "allow_always";
    return { option, allows, tone: toneOf(option), confirm: needsSecondStep(approval, option, touch) };
  });
}

function toneOf({ kind }: ApprovalOption): OptionTone {
  if (kind === "allow_once") return "primary";
  return kind === "allow_always" ? "secondary" : "plain";
}

/**
 * Whether an option has to be confirmed: it changes more than this one request, or, where a finger may slip, what it allows
 * cannot be undone.
 */
export function needsSecondStep(approval: Approval, option: ApprovalOption, touch: boolean): boolean {
  switch (option.kind) {
    case "allow_always":
    case "reject_always":
      return true;
    case "allow_once":
      return hasWideEffect(option) || (touch && isDestructive(approval.detail.command ?? approval.title));
    default:
      return false;
  }
}

/** Words that tell of more than one request. Agents choose the kinds of their options themselves, and some call these "once". */
const WIDE =
  /\b(?:always|all|any|every|everything|never|auto\w*|bypass\w*|skip\w*|trust\w*|yolo|accept ?edits|not ask|don['’]t ask|without (?:asking|approval)|full access)\b/i;

/** Whether an option says that it changes more than this one request. */
export function hasWideEffect({ label, effect = "" }: ApprovalOption): boolean {
  return WIDE.test(`${label}\n${effect}`);
}

/** The parts of what the agent wants to do. */
export type PartName = "command" | "diff" | "text";

export interface Part {
  readonly name: PartName;
  readonly text: string;
  /** The beginning, if the rest is folded. */
  readonly beginning: string | undefined;
  /** How many lines the whole part has. */
  readonly lines: number;
}

/** How much of a part is shown before it was opened. */
export interface FoldLimits {
  readonly lines: number;
  readonly characters: number;
}

const LIMITS: FoldLimits = { lines: 24, characters: 2000 };
/** A plan is read as a document. */
const PLAN_LIMITS: FoldLimits = { lines: 80, characters: 8000 };
const COMPACT_LIMITS: FoldLimits = { lines: 10, characters: 800 };

/** The parts of an approval, in the order in which they are shown. */
export function partsOf({ kind, detail }: Approval, compact: boolean): Part[] {
  return (["command", "diff", "text"] as const).flatMap((name) => {
    const text = detail[name];
    if (!text) return [];
    const limits = compact ? COMPACT_LIMITS : kind === "plan" ? PLAN_LIMITS : LIMITS;
    return [{ name, text, beginning: beginningOf(text, limits), lines: text.split("\n").length }];
  });
}

/** The beginning of a text that exceeds the limits; `undefined` for one that does not. */
export function beginningOf(text: string, { lines, characters }: FoldLimits): string | undefined {
  const cut = text.split("\n", lines).join("\n").slice(0, characters);
  if (cut.length >= text.trimEnd().length) return undefined;
  // Not between the halves of a surrogate pair.
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut;
}

/** The parts that the user has opened, each with the text that it had then. */
export type Opened = Readonly<Partial<Record<PartName, string>>>;

/** The parts that the user has not seen whole. */
export function unopened(parts: readonly Part[], opened: Opened): Part[] {
  return parts.filter(({ name, text, beginning }) => beginning !== undefined && opened[name] !== text);
}

/**
 * Whether this page has all of a request. Lists have shortened texts, of which the rest is `loading` or could not be loaded
 * (`failed`). What is `cut` was too long for the session, and is nowhere.
 */
export type Completeness = "whole" | "loading" | "failed" | "cut";

const PART_NAMES: Readonly<Record<PartName, string>> = { command: "command", diff: "changes", text: "text" };

/** Why nothing can be allowed yet; `undefined` if it can. `accepted`: the user allows it without seeing what is missing. */
export function whyBlocked(
  completeness: Completeness,
  accepted: boolean,
  unopened: readonly Part[],
): string | undefined {
  if (completeness === "loading") return "The rest of this request is loading.";
  if (unopened.length > 0) {
    const names = unopened.map(({ name }) => `the whole ${PART_NAMES[name]}`);
    return `Show ${names.join(" and ")} first.`;
  }
  if (completeness !== "whole" && !accepted)
    return "Parts of this request are missing. Tick the box above to go on anyway.";
  return undefined;
}
