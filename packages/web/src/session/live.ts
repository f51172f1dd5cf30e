/** An attached session of any kind, as the components around its view see it. */
import type { ConnectionState, ExitStatus, SessionInfo } from "@bowline/client";

/** What the view of each kind provides. Components read it, so its fields are reactive. */
export interface LiveSession {
  readonly state: ConnectionState;
  /** When the connection is retried, in `Date.now()` milliseconds; 0 if it is not waiting to be. */
  readonly retryAt: number;
  /** Undefined until the first attach. */
  readonly session: SessionInfo | undefined;
  readonly title: string;
  readonly cwd: string;
  /** The number of other viewers. */
  readonly others: number;
  readonly exit: ExitStatus | undefined;
  /** Reconnects now. */
  readonly retry: () => void;
  /** Starts an ended session again. */
  restart(): Promise<void>;
}
