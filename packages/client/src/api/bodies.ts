/**
 * The bodies of the HTTP API, as TypeScript types.
 *
 * Written from the Rust types in crates/proto; do not edit. To write it anew:
 *
 *     BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire
 */
import type { Code, Epoch, SessionInfo, Size } from "../core/wire.js";

/** A session to start. */
export type NewSession = { "kind": "terminal" } & NewTerminal;

/** A program to start on a terminal. */
export type NewTerminal = {
  /** 1 to 64 of `A-Z a-z 0-9 . _ -`, and a letter or digit first. */
  name?: string,
  /** The program and its arguments; the login shell if empty. */
  argv?: Array<string>,
  /** An absolute path; the home directory if absent. */
  cwd?: string,
  /** Variables beside those of a login. */
  env?: Record<string, string>,
  /** The terminal's size; 80 columns and 24 rows if absent. */
  size?: Size,
  /** What to do when a running session has the name; `fail` if absent. */
  if_exists?: IfExists,
  /** Seconds without a viewer after which it ends; 0 for never. */
  detached_ttl?: number,
  /** Bytes of output that it keeps; the server's setting if absent. */
  log_size?: number,
  /** Lines that it keeps above the screen; the server's setting if absent. */
  scrollback?: number,
};

/** What to do when a running session has the name already. */
export type IfExists = "fail" | "return" | "restart";

/** All sessions of a machine. */
export type SessionList = {
  /** Oldest first. */
  sessions: Array<SessionInfo>,
};

/** What to change in a session. */
export type SessionChange = {
  /** A new name. */
  name?: string,
  /** Seconds without a viewer after which it ends; 0 for never. */
  detached_ttl?: number,
};

/** Which life of a session to restart. */
export type Restart = {
  /** The life that ended. If it is not the last one any more, the session stays as it is. */
  epoch?: Epoch,
};

/** Something for a session to do once. */
export type NewCommand = {
  /** Chosen by the caller, 1 to 64 bytes. A second command with the same id is a repeat. */
  id: string,
  /** `{"type":"input","text"}` or `{"type":"signal","name"}`. */
  command: unknown,
};

/** A command that a session accepted. */
export type CommandAccepted = {
  /** The command's id. */
  id: string,
  /** Its place in the session's events. */
  seq: number,
  /** Whether it is a repeat. */
  status: CommandStatus,
};

/** Whether a command was accepted now or before. */
export type CommandStatus = "accepted" | "duplicate" | "unknown";

/** Text that opens something: a token, a code, a key. */
export type Secret = string;

/** A one-time code, from the fragment of a login link. */
export type Login = {
  /** It works once. */
  code: Secret,
};

/** What a page keeps of its login; the cookie comes in a header. */
export type LoginReply = {
  /** To be sent as `Bowline-Key` with every call, and as `key` in the hello of a WebSocket. */
  key: Secret,
};

/** How much a caller may do; each scope includes those before it. */
export type TokenScope = "read" | "write" | "admin";

/** A token to make. */
export type NewToken = {
  /** What it is for: 1 to 64 of `A-Z a-z 0-9 . _ -`. */
  name: string,
  /** What it allows. */
  scope: TokenScope,
  /** Seconds for which it works; until it is revoked if absent. */
  ttl?: number,
};

/** A token that was made. */
export type TokenReply = {
  /** By which it is listed and revoked. */
  id: string,
  /** Shown this once. */
  token: Secret,
};

/** Everything that can be revoked. */
export type TokenList = {
  /** Tokens and browser logins, the oldest first. */
  tokens: Array<TokenInfo>,
};

/** A token or a browser login, without its secret. */
export type TokenInfo = {
  /** By which it is revoked. */
  id: string,
  /** A token or a login. */
  kind: TokenKind,
  /** The token's name, or how the browser described itself. */
  name: string,
  /** What it allows. */
  scope: TokenScope,
  /** When it was made, RFC 3339 UTC. */
  created: string,
  /** When it ends by itself. */
  expires: string | null,
  /** When it was last used, to within a day. */
  used: string | null,
};

/** What can be revoked. */
export type TokenKind = "token" | "login";

/** A code that logs one browser in. */
export type CodeReply = {
  /** For the fragment of a login link: `URL/#login=CODE`. It works once. */
  code: Secret,
  /** Until when, RFC 3339 UTC. */
  expires: string,
};

/** A ticket for a WebSocket or event stream that can send neither cookie nor header. */
export type TicketReply = {
  /** To be sent as `?ticket=`, once. */
  ticket: Secret,
  /** Until when, RFC 3339 UTC. */
  expires: string,
};

/** The body of a refusal over HTTP. The code is also in the header `Bowline-Code`. */
export type Problem = {
  /** Always `about:blank`. */
  type: string,
  /** The status in words. */
  title: string,
  /** The HTTP status. */
  status: number,
  /** For programs. */
  code: Code,
  /** For people. */
  detail: string,
  /** With `out_of_range`: what the log keeps. */
  retained?: Retained,
};

/** The part of a session's output that its log keeps. */
export type Retained = {
  /** The oldest byte. */
  from: number,
  /** One past the newest. */
  to: number,
};
