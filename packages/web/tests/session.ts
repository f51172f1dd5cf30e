/** Sessions for tests. */
import type { SessionInfo } from "@bowline/client";

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
