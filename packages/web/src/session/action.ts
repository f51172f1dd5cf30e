/** A user's request to rename, end, forget or restart a session. */
import type { SessionInfo } from "@bowline/client";

export interface Action {
  readonly kind: "rename" | "end" | "forget" | "restart";
  /** The session as it was when the action was chosen. */
  readonly session: SessionInfo;
}
