/** Sessions for tests. */
import type { Approval, SessionInfo } from "@bowline/client";

/** A running terminal session, with `changes` applied. */
export function session(changes: Partial<SessionInfo> = {}): SessionInfo {
  return {
    id: "k3v9x0q2m7aa",
    name: null,
    kind: "terminal",
    state: "running",
    created: "2026-11-15T18:00:00Z",
    cwd: "/home/dev/app",
    argv: ["/bin/bash"],
    title: "",
    size: { cols: 80, rows: 24 },
    clients: 0,
    epoch: "9f3c61d2",
    offset: 0,
    degraded: false,
    version: "0.1.0",
    ...changes,
  };
}

/** A `call`: the program rang the bell. */
export const bell = { at: "2026-11-15T18:01:00Z", kind: "bell", text: "" } as const;

/** A running session of an agent that waits for `approvals`. */
export function agentSession(approvals: Approval[], changes: Partial<SessionInfo> = {}): SessionInfo {
  const { argv: _argv, size: _size, ...rest } = session();
  const agent = { agent: "gemini", conversation: null, activity: null, queued: 0, approvals };
  return { ...rest, kind: "agent", ...agent, ...changes };
}

/** A permission to run a command, with `changes` applied. */
export function approval(changes: Partial<Approval> = {}): Approval {
  return {
    id: "a0",
    run: "r0",
    kind: "permission",
    tool: "execute",
    title: "Run the tests",
    detail: { command: "npm test", cwd: "/home/dev/app" },
    truncated: false,
    options: [
      { id: "once", kind: "allow_once", label: "Allow once" },
      { id: "always", kind: "allow_always", label: "Always allow", effect: "adds a rule" },
      { id: "no", kind: "reject_once", label: "Reject" },
    ],
    at: "2026-11-15T18:00:00Z",
    ...changes,
  };
}
