/** Text for the user about sessions and their connections. */
import type { Approval, ConnectionState, ExitStatus, SessionInfo, Unsent } from "@bowline/client";
import type { AttentionReason } from "../state/attention.ts";

export interface ConnectionText {
  readonly tone: "good" | "busy" | "bad" | "over";
  readonly text: string;
  /** Follows `text` and changes every second; hidden from screen readers. */
  readonly countdown?: string;
}

const UNREACHABLE = "Cannot reach the gateway";

/** Describes a connection. `seconds` are left until the next retry; `wasConnected` is whether it was ever open. */
export function connectionText(state: ConnectionState, seconds: number, wasConnected: boolean): ConnectionText {
  switch (state.name) {
    case "connecting":
      return { tone: "busy", text: "Connecting…" };
    case "open":
      return { tone: "good", text: "Connected" };
    case "reconnecting":
      return {
        tone: "busy",
        text: `${wasConnected ? "Connection lost" : UNREACHABLE}, retrying`,
        countdown: `${seconds > 0 ? ` in ${seconds}s` : " now"} (attempt ${state.attempt})`,
      };
    case "offline":
      return {
        tone: "bad",
        text: `${wasConnected ? "Not connected" : UNREACHABLE}${state.reason && `: ${state.reason}`}`,
      };
    case "needs-login":
      return { tone: "bad", text: "Log in to continue" };
    case "ended":
      return { tone: "over", text: "Ended" };
    case "gone":
      return { tone: "bad", text: goneText(state.why) };
  }
}

/** Why a connection failed permanently. */
export function goneText(why: string): string {
  switch (why) {
    case "unknown":
      return "Session not found";
    case "gone":
      return "This session no longer exists";
    case "not_allowed":
      return "Your login does not have access";
    case "version":
      return "The gateway runs a different version. Reload the page";
    default:
      return "The gateway refused the connection";
  }
}

/** How a program ended. */
export function exitText(exit: ExitStatus | undefined, lost = false): string {
  if (lost) return "Lost: the process is gone. Showing its last screen";
  if (exit?.signal) return `Ended by ${exit.signal}`;
  if (exit && exit.code !== null) return exit.code === 0 ? "Exited normally" : `Exited with code ${exit.code}`;
  return "Ended";
}

/** The last `maxLength` characters of unsent input, with control characters made visible. */
export function unsentText(unsent: Unsent, maxLength = 40): string {
  // Decode only the end of a large paste. UTF-8 has at most four bytes per character.
  const end = unsent.bytes.subarray(-4 * (maxLength + 1));
  const shown = Array.from(new TextDecoder().decode(end), visible).join("");
  return shown.length > maxLength ? `…${shown.slice(-maxLength)}` : shown;
}

function visible(char: string): string {
  const code = char.charCodeAt(0);
  if (char === "\r") return "⏎";
  if (code === 0x7f) return "⌫";
  if (code === 0x1b) return "⎋";
  return code < 0x20 ? `^${String.fromCharCode(code + 0x40)}` : char;
}

export function otherViewersText(others: number): string {
  return others === 0 ? "" : others === 1 ? "1 other viewer" : `${others} other viewers`;
}

/** The name of a caller. `local` is a client on the session's machine. */
export function callerText(by: string): string {
  return by === "local" ? "a terminal on the server" : by;
}

/** A session's display name: its name, else its command, title or id. */
export function nameOf(session: SessionInfo): string {
  return session.name || commandOf(session) || session.title || session.id;
}

/**
 * The program without its directory, and its arguments; for `sh -c LINE`, the line. Empty for sessions that
 * are not terminals.
 */
export function commandOf({ argv = [] }: SessionInfo): string {
  const [program = "", ...rest] = argv;
  if (/(^|\/)sh$/.test(program) && rest[0] === "-c" && rest[1]) return rest[1];
  return [program.slice(program.lastIndexOf("/") + 1).replace(/^-/, ""), ...rest].join(" ");
}

/** What kind of session it is; for an agent session, the name of its agent. */
export function kindText({ kind, agent }: SessionInfo): string {
  return { terminal: "Terminal", agent: agent || "Agent", unknown: "Unknown kind" }[kind];
}

export function stateText(session: SessionInfo): string {
  if (session.state === "running") return "Running";
  if (session.state === "unknown") return "Unknown state";
  return session.state === "lost" ? "Lost" : exitText(session.exit);
}

export function attentionText(reason: AttentionReason, session: SessionInfo): string {
  switch (reason.kind) {
    case "approval":
      return approvalsText(reason.approvals);
    case "bell":
      return "Rang the bell";
    case "notify":
      return reason.text;
    case "ended":
      return stateText(session);
  }
}

/** What an agent waits for, in one line. */
export function approvalsText(approvals: readonly Approval[]): string {
  const [first] = approvals;
  if (!first || approvals.length > 1) return `${approvals.length} approvals wait`;
  switch (first.kind) {
    case "permission":
      if (first.detail.command) return `Asks to run: ${oneLine(first.detail.command)}`;
      return first.title ? `Asks for permission: ${oneLine(first.title)}` : "Asks for permission";
    case "question":
      return "Has a question";
    case "plan":
      return "Asks for consent to its plan";
    case "unknown":
      return "Asks for something that this version does not know";
  }
}

/** The beginning of a text, as one line, without characters that turn text around. */
function oneLine(text: string): string {
  const line = text
    .slice(0, 400)
    .replace(/\s+/g, " ")
    .replace(/[\p{Cc}\p{Bidi_Control}]/gu, "\ufffd")
    .trim();
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

/**
 * A path with its home directory shortened to `~`. A browser does not know the home directory, so the usual
 * ones are matched.
 */
export function shortPath(path: string): string {
  return path.replace(/^\/(?:home|Users)\/[^/]+(?=\/|$)|^\/root(?=\/|$)/, "~");
}

/** The time since `at`, rounded; empty if `at` is missing or malformed. */
export function ago(at: string | undefined, now: number): string {
  const then = at === undefined ? NaN : Date.parse(at);
  if (!Number.isFinite(then)) return "";
  const seconds = Math.max((now - then) / 1000, 0);
  if (seconds < 45) return "just now";
  if (seconds < 90 * 60) return `${Math.max(Math.round(seconds / 60), 1)} min ago`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}
