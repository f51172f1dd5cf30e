/** What this device remembers of the dialog: the kind, the agent and the folders that were chosen last. */
import type { SessionInfo } from "@bowline/client";

export type SessionKind = "terminal" | "agent";

export interface Choices {
  readonly kind: SessionKind;
  /** The name of the agent; empty if none was chosen. */
  readonly agent: string;
  /** The folder of the last session of each kind. */
  readonly lastFolder: Readonly<Record<SessionKind, string>>;
  /** The folders that were chosen, newest first. */
  readonly folders: readonly string[];
}

/** The home directory, as the server understands it. */
export const HOME = "~";

/** How many folders of sessions are offered, and how many chosen ones are remembered. */
const MAX_FOLDERS = 8;
/** How many recent folders are offered. */
const MAX_RECENT = 12;

/** Parses stored choices; a missing or malformed value becomes its default. */
export function parseChoices(stored: string | undefined): Choices {
  let found: Record<string, unknown> = {};
  try {
    found = Object(JSON.parse(stored ?? "{}")) as typeof found;
  } catch {
    // Damaged: use the defaults.
  }
  const last = Object(found["lastFolder"]) as Record<string, unknown>;
  const folders: unknown[] = Array.isArray(found["folders"]) ? found["folders"] : [];
  return {
    kind: found["kind"] === "agent" ? "agent" : "terminal",
    agent: text(found["agent"]),
    lastFolder: { terminal: text(last["terminal"]) || HOME, agent: text(last["agent"]) || HOME },
    folders: folders.filter(isFolder).slice(0, MAX_FOLDERS),
  };
}

/** The choices after a session was started in `folder`. `asked` is what the user entered: the home directory is no choice. */
export function withFolder(choices: Choices, kind: SessionKind, asked: string, folder: string): Choices {
  const isHome = asked === "" || asked === HOME;
  const others = choices.folders.filter((other) => other !== folder);
  return {
    ...choices,
    lastFolder: { ...choices.lastFolder, [kind]: isHome ? HOME : folder },
    folders: isHome ? choices.folders : [folder, ...others].slice(0, MAX_FOLDERS),
  };
}

/** The folders of the sessions of this machine, newest first, then those that were chosen on this device. */
export function recentFolders(sessions: Iterable<SessionInfo>, chosen: readonly string[]): readonly string[] {
  const at = (session: SessionInfo) => session.active ?? session.created;
  const ofSessions = [...sessions]
    .filter((session) => session.host === undefined && isFolder(session.cwd))
    .sort((a, b) => at(b).localeCompare(at(a)))
    .map((session) => (session.cwd === "/" ? "/" : session.cwd.replace(/\/+$/, "")));
  const first = [...new Set(ofSessions)].slice(0, MAX_FOLDERS);
  return [...new Set([...first, ...chosen])].slice(0, MAX_RECENT);
}

function isFolder(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("/");
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
