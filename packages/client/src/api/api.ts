/** The HTTP API, by `fetch`. Every failure is an {@link ApiError}. */
import type { TargetBuilder } from "../connection/environment.js";
import type { ClientId, SessionInfo } from "../core/wire.js";
import type { ApiOptions, Auth, LogPart, NewSession, SessionChange, TokenInfo, TokenScope } from "./types.js";

/** The HTTP API of one gateway. */
export declare class Api {
  constructor(options: ApiOptions);
  /** How requests and dials are let in. Set it after a login; connections use it from their next dial on. */
  auth: Auth;
  /** Every session. */
  sessions(): Promise<SessionInfo[]>;
  /** One session, by id or name. */
  session(session: string): Promise<SessionInfo>;
  /** Starts a terminal session. With a `key`, a repeat returns the first one. */
  create(session: NewSession, key?: string): Promise<SessionInfo>;
  /** Renames it, or changes when it ends by itself. */
  change(session: string, change: SessionChange): Promise<SessionInfo>;
  /** Ends it and forgets it; with `keep`, ends it only. */
  end(session: string, options?: { keep?: boolean }): Promise<void>;
  /** A lost or exited session lives again. With `epoch`, only that life is restarted. */
  restart(session: string, epoch?: string): Promise<SessionInfo>;
  /** The screen now, as text or ANSI. */
  screen(session: string, format?: "text" | "ansi"): Promise<string>;
  /** Output that is still kept. */
  log(session: string, range?: { from?: number; to?: number }): Promise<LogPart>;
  /** Exchanges a one-time code for a cookie and a key, and uses them from now on. Keep the key in the origin's own storage. */
  login(code: string): Promise<{ key: string }>;
  /** Forgets the login, here and there. */
  logout(): Promise<void>;
  /** A single-use ticket for one dial. */
  ticket(): Promise<string>;
  /** The tokens, without their secrets. */
  tokens(): Promise<TokenInfo[]>;
  /** A new token; its secret is shown this once. */
  createToken(token: { name: string; scope: TokenScope; ttl?: number }): Promise<{ id: string; token: string }>;
  /** Ends a token and its connections. */
  revokeToken(id: string): Promise<void>;
  /** Where to dial to attach to a session. */
  attachTarget(session: string): TargetBuilder;
  /** Where to dial for the event stream. */
  eventsTarget(client: ClientId): TargetBuilder;
}
