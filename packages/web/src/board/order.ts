/** The board's order and words. */
import type { SessionInfo } from "@bowline/client";
import { isOver, type Need, needOf, type SeenBoard } from "../state/seen.ts";
import { exitWords } from "../terminal/words.ts";

/** A session on the board. */
export interface Entry {
  readonly session: SessionInfo;
  readonly need: Need | undefined;
}

/** The board in three parts, each with the latest first: who needs you, what runs, what ended. */
export interface Parts {
  readonly needing: readonly Entry[];
  readonly running: readonly Entry[];
  readonly ended: readonly Entry[];
}

/** Sorts the board. What runs is sorted by its name where one was given, so that rows do not jump about while programs print. */
export function partsOf(sessions: Iterable<SessionInfo>, seen: SeenBoard): Parts {
  const entries = Array.from(sessions, (session): Entry => ({ session, need: needOf(session, seen[session.id]) }));
  const byName = (a: Entry, b: Entry) =>
    Number(a.session.name === null) - Number(b.session.name === null) ||
    (a.session.name ?? "").localeCompare(b.session.name ?? "", undefined, { numeric: true }) ||
    latest(a, b);
  const latest = (a: Entry, b: Entry) =>
    b.session.created.localeCompare(a.session.created) || a.session.id.localeCompare(b.session.id);
  const calls = (a: Entry, b: Entry) =>
    (b.session.call?.at ?? "").localeCompare(a.session.call?.at ?? "") || latest(a, b);
  return {
    needing: entries.filter((entry) => entry.need).sort(calls),
    running: entries.filter((entry) => !entry.need && !isOver(entry.session)).sort(byName),
    ended: entries.filter((entry) => !entry.need && isOver(entry.session)).sort(latest),
  };
}

/** What a session is called: its name, else its command, its title or its id. */
export function nameOf(session: SessionInfo): string {
  return session.name || commandOf(session) || session.title || session.id;
}

/** The program without its directory, and its arguments; of a shell that runs one command line, that line. Only a terminal has one. */
export function commandOf({ argv = [] }: SessionInfo): string {
  const [program = "", ...rest] = argv;
  if (/(^|\/)sh$/.test(program) && rest[0] === "-c" && rest[1]) return rest[1];
  return [program.slice(program.lastIndexOf("/") + 1).replace(/^-/, ""), ...rest].join(" ");
}

/** What kind of session it is. */
export function kindOf({ kind }: SessionInfo): string {
  return { terminal: "Terminal", agent: "Agent", unknown: "Unknown kind" }[kind];
}

/** Whether it lives, in a few words. */
export function lifeOf(session: SessionInfo): string {
  if (session.state === "running") return "Running";
  if (session.state === "unknown") return "Unknown state";
  return session.state === "lost" ? "Lost" : exitWords(session.exit);
}

/** Why it needs somebody, in a few words. */
export function needWords(need: Need, session: SessionInfo): string {
  switch (need.kind) {
    case "bell":
      return "Rang the bell";
    case "notify":
      return need.text;
    case "ended":
      return lifeOf(session);
  }
}

/** A directory, its home part shortened; `home` is not known to a browser, so the usual places are. */
export function shortPath(path: string): string {
  return path.replace(/^\/(?:home|Users)\/[^/]+(?=\/|$)|^\/root(?=\/|$)/, "~");
}

/** How long ago, roughly. */
export function ago(at: string | undefined, now: number): string {
  const then = at === undefined ? NaN : Date.parse(at);
  if (!Number.isFinite(then)) return "";
  const seconds = Math.max((now - then) / 1000, 0);
  if (seconds < 45) return "just now";
  if (seconds < 90 * 60) return `${Math.max(Math.round(seconds / 60), 1)} min ago`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}
