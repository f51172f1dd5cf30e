/** The form in which an entry is stored, so that it is sent even if the page is closed before. */
import { attempt, checked, integer, object, oneOf, type Shape, text } from "../shape.js";
import type { Command, Failure, PostEntry, PostState } from "./entry.js";
import { MAX_COMMAND_ID, MAX_SESSION } from "./limits.js";

/** The version of the form. An entry of another version is not sent. */
const VERSION = 1;
/** The latest time that a stored entry may have: the latest one that JavaScript can represent as a date. */
const MAX_TIME = 8_640_000_000_000_000;

/** Whether a text is well-formed, and has 1 to `max` bytes of UTF-8. */
export function hasLength(value: string, max: number): boolean {
  const isWellFormed = !/\p{Surrogate}/u.test(value);
  return isWellFormed && value !== "" && value.length <= max && new TextEncoder().encode(value).length <= max;
}

/** Whether a value can be a command: an object with a `type`. */
export function isCommand(value: unknown): value is Command {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && typeof (value as Command).type === "string";
}

const command: Shape<Command> = (value) => (isCommand(value) ? value : object<Command>({ type: text })(value));
const refusal = object<Failure>({ reason: oneOf("refused"), code: text, message: text });
const otherFailure = object<Failure>({
  reason: oneOf("session_gone", "no_space", "expired", "old", "unreadable"),
  message: text,
});

const stored = object<{
  version: number;
  id: string;
  session: string;
  order: number;
  made: number;
  command: Command;
}>({
  version: integer(VERSION, VERSION),
  id: checked("an id", (id) => hasLength(id, MAX_COMMAND_ID)),
  session: checked("the id of a session", (session) => hasLength(session, MAX_SESSION)),
  order: integer(0, MAX_TIME),
  made: integer(0, MAX_TIME),
  command,
});

/** The text to store. It has no state except a failure, because another try finds out everything else. */
export function toStored({ id, session, order, made, command, state }: PostEntry): string {
  const entry = { version: VERSION, id, session, order, made, command };
  if (state.name !== "failed") return JSON.stringify(entry);
  const { name: _, ...failed } = state;
  return JSON.stringify({ ...entry, failed });
}

/** Reads a stored text. One that cannot be read is a failed entry, so that the user learns of it. */
export function fromStored(id: string, text: string): PostEntry {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const entry = attempt(stored)(value);
  if (entry?.id !== id) {
    const state = unreadable("a stored message cannot be read; it is damaged, or of a newer version");
    return { id, session: "", command: undefined, made: 0, order: 0, state };
  }
  const { session, order, made, command } = entry;
  return { id, session, command, made, order, state: stateOf(value as { failed?: unknown }) };
}

function stateOf(value: { failed?: unknown }): PostState {
  if (value.failed === undefined) return { name: "waiting", why: "turn" };
  const failure = attempt(refusal)(value.failed) ?? attempt(otherFailure)(value.failed);
  // Never sent by itself, even if this version does not know the reason.
  if (!failure) return unreadable("sending it failed for a reason that this version does not know");
  return { name: "failed", ...failure };
}

function unreadable(message: string): PostState {
  return { name: "failed", reason: "unreadable", message };
}
