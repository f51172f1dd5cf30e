/** Sessions and their connections, in plain words. */
import type { ConnectionState, ExitStatus, SessionInfo, Unsent } from "@bowline/client";
import type { Need } from "../state/seen.ts";

/** A sentence about a connection, and how much it matters. */
export interface Words {
  readonly tone: "good" | "busy" | "bad" | "over";
  readonly text: string;
  /** What follows it and changes every second: to be seen, and not to be read out. */
  readonly when?: string;
}

const UNREACHED = "The gateway cannot be reached";

/** The state in plain words; `seconds` is what is left of a delay, and `before` whether there ever was a connection. */
export function stateWords(state: ConnectionState, seconds: number, before: boolean): Words {
  switch (state.name) {
    case "connecting":
      return { tone: "busy", text: "Connecting" };
    case "open":
      return { tone: "good", text: "Connected" };
    case "reconnecting":
      return {
        tone: "busy",
        text: `${before ? "Connection lost" : UNREACHED}, trying again`,
        when: seconds > 0 ? ` in ${seconds} s` : " now",
      };
    case "offline":
      return { tone: "bad", text: before ? "Not connected" : UNREACHED };
    case "needs-login":
      return { tone: "bad", text: "Log in to go on" };
    case "ended":
      return { tone: "over", text: "Ended" };
    case "gone":
      return { tone: "bad", text: goneWords(state.why) };
  }
}

/** Why a connection will never work. */
export function goneWords(why: string): string {
  switch (why) {
    case "unknown":
      return "There is no such session";
    case "gone":
      return "This session was ended and forgotten";
    case "not_allowed":
      return "This login may not open it";
    case "version":
      return "The gateway speaks another version: reload the page";
    default:
      return "The gateway refused the connection";
  }
}

/** How a program ended. */
export function exitWords(exit: ExitStatus | undefined, lost = false): string {
  if (lost) return "Lost: its process is gone, its last screen is here";
  if (exit?.signal) return `Ended by ${exit.signal}`;
  if (exit && exit.code !== null) return exit.code === 0 ? "Exited normally" : `Exited with code ${exit.code}`;
  return "Ended";
}

/** Unsent keys as somebody can read them: control characters by name, shortened from the front. */
export function unsentWords(unsent: Unsent, longest = 40): string {
  // Of a large paste, only the end is looked at; no character has more than four bytes.
  const end = unsent.bytes.subarray(-4 * (longest + 1));
  const shown = Array.from(new TextDecoder().decode(end), visible).join("");
  return shown.length > longest ? `…${shown.slice(-longest)}` : shown;
}

function visible(char: string): string {
  const code = char.charCodeAt(0);
  if (char === "\r") return "⏎";
  if (code === 0x7f) return "⌫";
  if (code === 0x1b) return "⎋";
  return code < 0x20 ? `^${String.fromCharCode(code + 0x40)}` : char;
}

/** Who else is here. */
export function othersWords(others: number): string {
  return others === 0 ? "" : others === 1 ? "1 other here" : `${others} others here`;
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
