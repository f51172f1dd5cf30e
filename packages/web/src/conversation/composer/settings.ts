/** What can be set in the agent: the pickers, what was chosen and not confirmed yet, and which modes are dangerous. */
import type { AgentConfig, Choice, Choices, Command, PostEntry } from "@bowline/client";
import { isUnsent } from "./queue.ts";

/** Settings that are shown; agents have a few. */
const MAX_SETTINGS = 20;
/** Choices of a setting that are shown at once; a filter finds the others. */
const MAX_SHOWN = 300;

/** A setting with its choices. */
export interface Setting {
  /** `mode`, `model`, or an option's id after `option `. */
  readonly key: string;
  readonly label: string;
  /** The id of the current choice, if it is known. */
  readonly current: string | undefined;
  readonly choices: readonly Choice[];
  /** The command that chooses the one with this id. */
  readonly command: (id: string) => Command;
  /** Whether the agent works without approvals with this choice. */
  readonly isDangerous: (id: string) => boolean;
}

/** What the agent lets the user set. */
export function settingsOf(config: AgentConfig | undefined): Setting[] {
  if (!config) return [];
  const { modes, models, options } = config;
  const settings: Setting[] = [];
  const add = (key: string, label: string, of: Choices, command: Setting["command"]) => {
    const choices = uniqueById(of.available);
    if (choices.length === 0) return;
    const isDangerous = key === "model" ? () => false : skipsApprovals;
    settings.push({ key, label, current: of.current ?? undefined, choices, command, isDangerous });
  };
  if (modes) add("mode", "Mode", modes, (mode) => ({ type: "set", mode }));
  if (models) add("model", "Model", models, (model) => ({ type: "set", model }));
  for (const option of uniqueById(options)) {
    const { id, name } = option;
    add(`option ${id}`, name || id, option, (value) => ({ type: "set", option: { id, value } }));
  }
  return settings.slice(0, MAX_SETTINGS);
}

/** Without repeats: the lists are the agent's. */
function uniqueById<T extends { readonly id: string }>(list: readonly T[]): T[] {
  const ids = new Set<string>();
  return list.filter(({ id }) => !ids.has(id) && ids.add(id));
}

/** The last choice of this page for a setting that the session has not refused. */
export interface PendingChoice {
  /** The id of the command. */
  readonly id: string;
  readonly value: string;
}

/** What was chosen for a setting last, as long as the command is on its way. */
export function pendingChoice(entries: readonly PostEntry[], session: string, key: string): PendingChoice | undefined {
  for (const { id, session: to, command, state } of [...entries].reverse()) {
    const value = to === session && command?.type === "set" && !isUnsent(state) ? valueOf(command, key) : undefined;
    if (value !== undefined) return { id, value };
  }
  return undefined;
}

function valueOf(command: Command, key: string): string | undefined {
  if (key === "mode" || key === "model") {
    const value = command[key];
    return typeof value === "string" ? value : undefined;
  }
  const { id, value } = Object(command["option"]) as { id?: unknown; value?: unknown };
  return typeof id === "string" && typeof value === "string" && key === `option ${id}` ? value : undefined;
}

/** The name of a choice. The current one may not be in the list. */
export function choiceName(choices: readonly Choice[], id: string): string {
  return choices.find((choice) => choice.id === id)?.name || id;
}

/** The choices whose name, id or description contains every word of a filter. */
export function filterChoices(choices: readonly Choice[], filter: string): readonly Choice[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = choices.filter(({ id, name, description = "" }) => {
    const text = `${name} ${id} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return found.slice(0, MAX_SHOWN);
}

/** Parts of the names of modes in which agents act without approvals; case and punctuation do not count. */
const DANGEROUS = [
  "bypass",
  "yolo",
  "dontask",
  "fullaccess",
  "autoapprove",
  "approveall",
  "skippermission",
  "dangerous",
];

/** Whether the agent acts without approvals if this is chosen, judging by its id. */
function skipsApprovals(id: string): boolean {
  const letters = id.toLowerCase().replace(/[^a-z]/g, "");
  return DANGEROUS.some((part) => letters.includes(part));
}

/** The last choice for a setting, until the agent has confirmed it. */
export interface Chosen extends PendingChoice {
  /** What the agent had said last when it was chosen. */
  readonly config: AgentConfig | undefined;
}

/**
 * The choice that is shown before the agent confirms it; `before` is the result of the last call. It stays after the session has
 * accepted the command until the agent says what can be set now, which it does once it has changed the setting.
 */
export function chosenFor(
  before: Chosen | undefined,
  entries: readonly PostEntry[],
  session: string,
  key: string,
  config: AgentConfig | undefined,
): Chosen | undefined {
  const pending = pendingChoice(entries, session, key);
  if (pending) return before?.id === pending.id ? before : { ...pending, config };
  const entry = entries.find(({ id }) => id === before?.id);
  if (!before || (entry && isUnsent(entry.state))) return undefined;
  return before.config === config ? before : undefined;
}

/** The place of the next choice whose name begins with a letter; `at` if there is none. */
export function nextBeginning(choices: readonly Choice[], at: number, letter: string): number {
  for (let step = 1; step <= choices.length; step++) {
    const place = (at + step) % choices.length;
    const { name, id } = choices[place]!;
    if ((name || id).toLowerCase().startsWith(letter.toLowerCase())) return place;
  }
  return at;
}
