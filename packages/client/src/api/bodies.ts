/**
 * The bodies of the HTTP API, as TypeScript types.
 *
 * Generated from the Rust types in crates/proto; do not edit. To regenerate:
 *
 *     BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire
 */
import type { Approval, Code, ConversationState, Epoch, Outcome, SessionId, SessionInfo, Size } from "../core/wire.js";

/** A session to start. */
export type NewSession = { "kind": "terminal" } & NewTerminal | { "kind": "agent" } & NewAgent;

/** A program to start on a terminal. */
export type NewTerminal = {
  /** 1 to 64 characters from `A-Z a-z 0-9 . _ -`, starting with a letter or digit. */
  name?: string,
  /** The program and its arguments; the login shell if empty. */
  argv?: Array<string>,
  /** An absolute path, or one that starts with `~`; the home directory if absent. */
  cwd?: string,
  /** Variables to add to the environment of a login. */
  env?: Record<string, string>,
  /** 80 columns and 24 rows if absent. */
  size?: Size,
  /** What to do if a running session has the name; `fail` if absent. */
  if_exists?: IfExists,
  /** End the session after this many seconds without a viewer; 0 for never. */
  detached_ttl?: number,
  /** Bytes of output to keep in the log; the server's setting if absent. */
  log_size?: number,
  /** Lines to keep above the screen; the server's setting if absent. */
  scrollback?: number,
};

/** A conversation with a coding agent to start. The agent's command and environment come from the server's table. */
export type NewAgent = {
  /** The agent's name in the server's table, such as `gemini`. */
  agent: string,
  /** The project's directory: an absolute path, or one that starts with `~`. */
  cwd: string,
  /** 1 to 64 characters from `A-Z a-z 0-9 . _ -`, starting with a letter or digit. */
  name?: string,
  /** A conversation of this agent to continue: 1 to 128 characters from `A-Z a-z 0-9 . _ : -`, not starting with `-`. */
  resume?: string,
  /** One of the modes that the server allows for this agent; the agent's own default if absent. */
  mode?: string,
  /** The agent's name for a model: 1 to 128 bytes without spaces, not starting with `-`; the agent's own default if absent. */
  model?: string,
  /** Starts the first run. */
  prompt?: FirstPrompt,
};

/** The first prompt of a new session. */
export type FirstPrompt = {
  /** The id of the command, chosen by the caller. */
  id: string,
  text: string,
};

/** What to do if a running session already has the name. */
export type IfExists = "fail" | "return" | "restart";

/** All sessions of a machine. */
export type SessionList = {
  /** Oldest first. */
  sessions: Array<SessionInfo>,
};

/** Changes to a session; absent fields stay as they are. */
export type SessionChange = {
  name?: string,
  /** End the session after this many seconds without a viewer; 0 for never. */
  detached_ttl?: number,
};

/** A request to restart an exited or lost session. */
export type Restart = {
  /** The epoch to replace. If the session has a newer one already, nothing is restarted. */
  epoch?: Epoch,
};

/** A command for a session, to be run exactly once. */
export type NewCommand = {
  /** 1 to 64 bytes, chosen by the caller. A second command with the same id is not run. */
  id: string,
  /** For a terminal `{"type":"input","text"}` or `{"type":"signal","name"}`; for an agent session
 * `{"type":"prompt","text","attachments"?}`, `{"type":"abort","run","queue"?}`, `{"type":"steer","run","text"}`,
 * `{"type":"set","mode"?,"model"?,"option"?}`, `{"type":"approve","approval","option"?}`,
 * `{"type":"deny","approval","option"?,"reason"?}` or `{"type":"answer","approval","answers"}`. */
  command: unknown,
};

/** The response to an accepted command. */
export type CommandAccepted = {
  /** The command's id. */
  id: string,
  /** The number of the command in the session's journal. */
  seq: number,
  /** The run that a prompt started, or that the command is about. */
  run?: string,
  status: CommandStatus,
};

/** Whether a command was accepted now or earlier. */
export type CommandStatus = "accepted" | "duplicate" | "unknown";

/** The response to an upload: a file that prompts of the session can attach. */
export type UploadReply = {
  /** What a prompt names it by. The same content under the same name has the same id. */
  id: string,
  /** The name that it was given. */
  name: string,
  /** The media type of the content, such as `image/png`. */
  type: string,
  bytes: number,
};

/** A secret, such as a token, a login code or a key. */
export type Secret = string;

/** A request to log a browser in. */
export type Login = {
  /** The one-time code from the fragment of a login link. */
  code: Secret,
};

/** The response to a login. The cookie is in a header. */
export type LoginReply = {
  /** Send it as `Bowline-Key` with every HTTP request, and as `key` in the hello of a WebSocket. */
  key: Secret,
};

/** What a caller may do. Each scope includes the ones before it. */
export type TokenScope = "read" | "write" | "admin";

/** A token to create. */
export type NewToken = {
  /** 1 to 64 characters from `A-Z a-z 0-9 . _ -`. */
  name: string,
  scope: TokenScope,
  /** Seconds until the token expires; it never expires if absent. */
  ttl?: number,
};

/** A new token. */
export type TokenReply = {
  /** The id to list and revoke the token by. */
  id: string,
  /** The server keeps only a hash, so this is the only time the token is shown. */
  token: Secret,
};

/** All tokens and browser logins. */
export type TokenList = {
  /** Oldest first. */
  tokens: Array<TokenInfo>,
};

/** A token or a browser login, without its secret. */
export type TokenInfo = {
  /** The id to revoke it by. */
  id: string,
  kind: TokenKind,
  /** The token's name, or the browser's description of itself. */
  name: string,
  scope: TokenScope,
  /** RFC 3339 UTC. */
  created: string,
  /** RFC 3339 UTC; null if it does not expire. */
  expires: string | null,
  /** When it was last used, RFC 3339 UTC, accurate to a day. */
  used: string | null,
  /** The token or login that made it, by its id, or `user:NAME` for a user of a proxy. Absent if it is not known. */
  made_by?: string,
};

/** Whether an entry is a token or a browser login. */
export type TokenKind = "token" | "login";

/** What a call that revokes a token or login did. */
export type Revoked = {
  /** The ids of the tokens and logins that were revoked. */
  revoked: Array<string>,
  /** The tokens and logins that were made under it, directly or not, and are still valid. */
  made: Array<TokenInfo>,
};

/** A code that logs one browser in. */
export type CodeReply = {
  /** Goes into the fragment of a login link: `URL/#login=CODE`. Works once. */
  code: Secret,
  /** RFC 3339 UTC. */
  expires: string,
};

/** A ticket for a WebSocket or event stream that can send neither cookie nor header. */
export type TicketReply = {
  /** Send it as `?ticket=`. Works once. */
  ticket: Secret,
  /** RFC 3339 UTC. */
  expires: string,
};

/** The body of an HTTP error. The code is also in the `Bowline-Code` header. */
export type Problem = {
  /** Always `about:blank`. */
  type: string,
  /** The name of the HTTP status. */
  title: string,
  status: number,
  code: Code,
  /** An explanation for people. */
  detail: string,
  /** Only with `out_of_range`: the bytes that the log has. */
  retained?: Retained,
  /** Only with `already_answered`: how the approval was closed. */
  outcome?: Outcome,
  /** Only with `already_answered`, if a client answered it: the name of its token or login. */
  by?: string,
};

/** The agents that sessions may run. */
export type AgentList = {
  /** By name, in alphabetical order. */
  agents: Array<AgentStatus>,
};

/** An agent of the server's table, and whether its program can be run. */
export type AgentStatus = {
  /** What a session is started with. */
  name: string,
  /** The name that users see. */
  label: string,
  protocol: AgentProtocol,
  /** False only if the program certainly cannot be run. */
  available: boolean,
  /** What the program says its version is. */
  version?: string,
  /** What is wrong and what to do, for people. An available agent can have one, such as a missing login. */
  problem?: string,
  /** A command that installs the program. */
  install?: string,
  /** The modes that a client may choose, as far as they are known. */
  modes: Array<string>,
  /** The models that the agent offered in its newest session. */
  models?: Array<string>,
};

/** What an agent's program speaks. */
export type AgentProtocol = "acp" | "claude" | "codex" | "unknown";

/** All approvals that wait for an answer. */
export type ApprovalList = {
  /** By session, oldest session first; each session's oldest first. */
  approvals: Array<WaitingApproval>,
};

/** An approval of a session. */
export type WaitingApproval = {
  /** The session's id. */
  session: SessionId,
  approval: Approval,
};

/** A page of the history of an agent session. */
export type EventPage = {
  /** The current epoch: with `next`, the cursor of what follows. */
  epoch: Epoch,
  /** The first number of the page. */
  start: number,
  /** The number after the last one of the page. */
  next: number,
  /** In ascending order. */
  events: Array<EventRecord>,
  /** There are more events in the direction of paging: newer ones with `after`, older ones otherwise. */
  more: boolean,
  /** The state of the conversation after the page. Only if the page ends where the journal does. */
  state?: ConversationState,
};

/** An event of an agent session, as its journal has it. */
export type EventRecord = {
  seq: number,
  /** The first number that it stands for, if it stands for several. */
  from?: number,
  /** When it was recorded, RFC 3339 UTC. */
  at: string,
  /** An object with a `type`. */
  event: unknown,
};

/** The part of a session's output that is still in its log. */
export type Retained = {
  from: number,
  /** Exclusive. */
  to: number,
};

/** Files and folders below the directory of a session. */
export type FileList = {
  /** The best matches first. */
  files: Array<FileEntry>,
  /** There are more matches, or the directory was too large to be searched as a whole. */
  truncated: boolean,
};

/** A file or folder below the directory of a session. */
export type FileEntry = {
  /** Relative to the directory of the session, with `/` between the names. */
  path: string,
  kind: FileKind,
};

/** Whether an entry is a file or a folder. */
export type FileKind = "file" | "folder" | "unknown";

/** The folders in a folder that sessions may be started in. */
export type FolderList = {
  /** The absolute path of the folder, without symbolic links. */
  path: string,
  /** The folder that contains it; null if that may not be listed. */
  parent: string | null,
  /** The folders whose contents may be listed. */
  roots: Array<string>,
  /** Sorted by name. */
  folders: Array<FolderEntry>,
  /** There are more folders than are listed. */
  truncated: boolean,
};

/** A folder in a folder. */
export type FolderEntry = {
  name: string,
  /** Whether it is a Git repository or worktree. */
  git: boolean,
};
