/** Something to do to a session, once the user has confirmed it. */
import type { SessionInfo } from "@bowline/client";

/** An action and its session, as it was when the action was chosen. */
export interface Action {
  readonly kind: "rename" | "end" | "forget" | "restart";
  readonly session: SessionInfo;
}
