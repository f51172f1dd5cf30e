/** A session of any kind that is attached, as the parts around its view see it. */
import type { ConnectionState, ExitStatus, SessionInfo } from "@bowline/client";

/** What the view of each kind provides. Components read it, so its fields are reactive. */
export interface LiveSession {
  readonly state: ConnectionState;
  /** When the next dial is due, by the page's clock; 0 for none. */
  readonly due: number;
  /** Undefined until the first attach. */
  readonly session: SessionInfo | undefined;
  readonly title: string;
  readonly cwd: string;
  /** How many other viewers there are. */
  readonly others: number;
  readonly exit: ExitStatus | undefined;
  /** Connects again now. */
  readonly retry: () => void;
  /** Starts an ended session again. */
  restart(): Promise<void>;
}
