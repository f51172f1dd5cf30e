/** Sessions of another kind in the same folder: the terminals beside a conversation, and the other way round. */
import type { SessionInfo } from "@bowline/client";

/** More are not offered. */
const MOST = 5;

/** The running sessions of another kind in the folder of this one, the latest used first. */
export function relatedSessions(session: SessionInfo, all: Iterable<SessionInfo>): SessionInfo[] {
  return [...all]
    .filter(({ id, kind, cwd, state }) => {
      return (
        id !== session.id && kind !== session.kind && kind !== "unknown" && state === "running" && cwd === session.cwd
      );
    })
    .sort((a, b) => (b.active ?? b.created).localeCompare(a.active ?? a.created))
    .slice(0, MOST);
}
