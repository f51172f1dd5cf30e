/**
 * The messages of the wire, as TypeScript types.
 *
 * Written from the Rust types in crates/proto; do not edit. To write it anew:
 *
 *     BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire
 *
 * Offsets and counts are u64 on the wire and `number` here; what reads them refuses those past 2^53 - 1.
 */

/** A session's id: 12 of `[a-z0-9]`, the name of its directory. */
export type SessionId = string;

/** A session's name, chosen by its owner. */
export type SessionName = string;

/** One life of a session: it changes when the terminal is restarted. */
export type Epoch = string;

/** One page load or program run of a viewer, kept over its reconnects. */
export type ClientId = string;

/** Columns and rows of a terminal, always within the bounds of this module. */
export type Size = { cols: number, rows: number,
};

/** A session as `ls`, `GET /v1/sessions` and `attached` describe it. */
export type SessionInfo = {
  /** Its id. */
  id: SessionId,
  /** Its name, if it was given one. */
  name: SessionName | null,
  /** Terminal or agent. */
  kind: Kind,
  /** Whether it lives. */
  state: State,
  /** How it ended; only when `exited`. */
  exit?: ExitStatus,
  /** When it was created, RFC 3339 UTC. */
  created: string,
  /** When it last printed something; up to ten seconds old while it prints. */
  active?: string,
  /** The last call for its owner in this life. */
  call?: Call,
  /** The machine that it belongs to, where that is not the one that describes it. */
  host?: string,
  /** Where it was started, or where it is now if its shell tells (OSC 7). */
  cwd: string,
  /** Its title; empty if it has none. */
  title: string,
  /** How many clients are attached. */
  clients: number,
  /** Its current life. */
  epoch: Epoch,
  /** The next position of a cursor: for a terminal, the end of its log in bytes. */
  offset: number,
  /** The log could not be written to disk and goes on in memory. */
  degraded: boolean,
  /** The version of the session process. */
  version: string,
} & Partial<TerminalInfo>;

/** The part of a [`SessionInfo`] that only a terminal has. */
export type TerminalInfo = {
  /** The program and its arguments. */
  argv: Array<string>,
  /** The terminal's size. */
  size: Size,
};

/** A program called for its owner. */
export type Call = {
  /** When, RFC 3339 UTC. No two calls of a session have the same time. */
  at: string,
  /** How. */
  kind: CallKind,
  /** In which words; none for the bell. */
  text: string,
};

/** How a program calls. */
export type CallKind = "bell" | "notify" | "unknown";

/** What runs in a session. */
export type Kind = "terminal" | "agent" | "unknown";

/** Whether a session lives. */
export type State = "running" | "exited" | "lost" | "unknown";

/** How a program ended: a code or a signal; neither when nobody saw it. */
export type ExitStatus = {
  /** The exit code, unless a signal ended it. */
  code: number | null,
  /** The signal's name, such as `SIGKILL`. */
  signal: string | null,
};

/** A stable code for programs. */
export type Code = "bad_request" | "bad_name" | "bad_size" | "input_hole" | "not_authenticated" | "not_allowed" | "bad_origin" | "bad_host" | "unknown_session" | "not_found" | "bad_method" | "too_slow" | "name_taken" | "id_reused" | "session_gone" | "too_large" | "out_of_range" | "bad_cwd" | "no_program" | "bad_ticket" | "no_version" | "too_many" | "internal" | "unreachable" | "no_space" | (string & {});

/** A place in one life of a session. */
export type Cursor = {
  /** The life. */
  epoch: Epoch,
  /** The next byte wanted. */
  offset: number,
};

/** What a viewer wants when it cannot keep up. */
export type Lag = "skip" | "wait";

/** The first message of a client. */
export type Hello = {
  /** [`VERSION`]. */
  version: number,
  /** This run of this client. */
  client: ClientId,
  /** Counts this client's dials, from 1. */
  conn: number,
  /** The client's id before a page reload: inherits size ownership, nothing else. */
  was?: ClientId,
  /** Where to go on; none for a fresh start. */
  cursor: Cursor | null,
  /** The size of the client's own window, if it has one. */
  size?: Size,
  /** What to do when it cannot keep up. */
  lag: Lag,
  /** Lines of scrollback wanted in a whole snapshot. */
  scrollback: number,
  /** Look only: never owns the size, never types. */
  observe: boolean,
  /** Answers for colour queries. */
  theme?: Theme,
  /** A browser's origin key; the gateway takes it out. */
  key?: string,
  /** What the gateway says the token allows; none on a local socket, which may do everything. */
  grant?: Grant,
};

/** What a viewer may do, in the gateway's words. */
export type Grant = {
  /** May type, send commands and own the size. */
  write: boolean,
};

/** The viewer's colours, `#rrggbb`: what OSC 10 and 11 queries answer. */
export type Theme = {
  /** Text. */
  fg: string,
  /** Background. */
  bg: string,
};

/** Text from a client. */
export type ClientMessage = { "type": "hello" } & Hello | { "type": "ack",
  /** The next byte that is not rendered. */
  output: number,
} | { "type": "resize" } & Size | { "type": "claim_size" } & Size | { "type": "repaint" } | { "type": "leave" } | { "type": "command",
  /** The command's id, chosen by the client. */
  id: string,
  /** What to do. */
  command: unknown,
} | { "type": "ping",
  /** Comes back in the pong. */
  n: number,
} | { "type": "pong",
  /** From the ping. */
  n: number,
};

/** A command to a terminal. */
export type TerminalCommand = { "type": "input",
  /** The text. */
  text: string,
} | { "type": "signal",
  /** Such as `INT`, also with `SIG` in front. */
  name: string,
};

/** The server's answer to a hello. */
export type Attached = {
  /** The session as it is now. */
  session: SessionInfo,
  /** Its current life. */
  epoch: Epoch,
  /** Where output goes on. */
  offset: number,
  /** How the resume went. */
  verdict: Verdict,
  /** Why a snapshot. */
  reason?: Reason,
  /** What the viewer will never see as bytes. */
  missed?: Missed,
  /** The snapshot that follows. */
  snapshot?: SnapshotLength,
  /** The size in force at `offset`. */
  size: Size,
  /** The number of this client's next input byte; none when it is not remembered. */
  input: number | null,
  /** What this viewer may do and is. */
  you: You,
  /** Milliseconds of silence after which a side pings. */
  heartbeat: number,
  /** The most output in flight. */
  window: number,
};

/** How a resume went. */
export type Verdict = "exact" | "snapshot";

/** Why a snapshot is sent. */
export type Reason = "fresh" | "trimmed" | "epoch" | "ahead" | "lagging" | "resize" | "repaint" | "unknown";

/** How much of the terminal a snapshot describes. */
export type Scope = "screen" | "all";

/** A range of output that a viewer does not get as bytes. */
export type Missed = {
  /** The first byte. */
  from: number,
  /** One past the last. */
  to: number,
};

/** How long the snapshot is that follows. */
export type SnapshotLength = {
  /** Bytes, over all its parts. */
  bytes: number,
};

/** What a viewer may do and is. */
export type You = {
  /** May type. */
  write: boolean,
  /** Owns the size. */
  size: boolean,
};

/** One attached client, as the others see it. */
export type Present = {
  /** Who. */
  client: ClientId,
  /** May type. */
  write: boolean,
  /** Owns the size. */
  size: boolean,
};

/** Text to a client. */
export type ServerMessage = { "type": "attached" } & Attached | { "type": "resize" } & Size | { "type": "ack",
  /** The number of its next input byte. */
  input: number,
} | { "type": "snapshot",
  /** Why. */
  reason: Reason,
  /** How much of the terminal. */
  scope: Scope,
  /** What is skipped. */
  missed?: Missed,
  /** Where output goes on. */
  offset: number,
  /** The size in force at `offset`. */
  size: Size,
  /** The snapshot's length. */
  bytes: number,
} | { "type": "title",
  /** The new title. */
  title: string,
} | { "type": "cwd",
  /** A path. */
  cwd: string,
} | { "type": "notify",
  /** Its title, which may be empty. */
  title: string,
  /** Its text. */
  body: string,
} | { "type": "url",
  /** Normalised. */
  url: string,
  /** It looks like a login that waits for the user. */
  open: boolean,
} | { "type": "bell" } | { "type": "presence",
  /** Everybody attached. */
  clients: Array<Present>,
} | { "type": "exit",
  /** Its code, unless a signal ended it. */
  code: number | null,
  /** The signal's name. */
  signal: string | null,
  /** The end of the log. */
  offset: number,
} | { "type": "event",
  /** Its number. */
  seq: number,
  /** When, RFC 3339 UTC. */
  at: string,
  /** What. */
  event: unknown,
} | { "type": "accepted",
  /** The command. */
  id: string,
  /** Its place in the session's events. */
  seq: number,
  /** It had been taken before. */
  duplicate: boolean,
} | { "type": "rejected",
  /** The command. */
  id: string,
  /** A problem code. */
  code: Code,
  /** For people. */
  message: string,
} | { "type": "error",
  /** A problem code. */
  code: Code,
  /** For people. */
  message: string,
  /** A close follows. */
  fatal: boolean,
} | { "type": "ping",
  /** Comes back in the pong. */
  n: number,
} | { "type": "pong",
  /** From the ping. */
  n: number,
} | { "type": "close",
  /** The close code. */
  code: number,
  /** For people. */
  reason: string,
};

/** A message of the event stream, to the client. */
export type BoardMessage = { "type": "welcome",
  /** The client id that the stream was opened with, or one that was made for it. */
  client: ClientId,
  /** One run of the gateway. */
  epoch: string,
  /** The gateway's version. */
  version: string,
  /** Milliseconds of silence after which a side pings. */
  heartbeat: number,
} | { "type": "board",
  /** The sessions. */
  sessions: Array<SessionInfo>,
  /** Approvals that wait. */
  approvals: Array<unknown>,
} | { "type": "session",
  /** As it is now. */
  session: SessionInfo,
} | { "type": "session_gone",
  /** Which. */
  id: SessionId,
} | { "type": "error",
  /** A problem code. */
  code: Code,
  /** For people. */
  message: string,
} | { "type": "ping",
  /** Comes back in the pong. */
  n: number,
} | { "type": "pong",
  /** From the ping. */
  n: number,
};

/** A message of the event stream's WebSocket form, to the server. */
export type BoardClientMessage = { "type": "hello",
  /** Its origin key. */
  key: string,
} | { "type": "ping",
  /** Comes back in the pong. */
  n: number,
} | { "type": "pong",
  /** From the ping. */
  n: number,
};
