/**
 * The protocol messages, as TypeScript types.
 *
 * Generated from the Rust types in crates/proto; do not edit. To regenerate:
 *
 *     BOWLINE_BLESS=1 cargo test -p bowline-proto --lib wire
 *
 * Offsets and counts are u64 on the wire and `number` here; the reader refuses values above 2^53 - 1.
 */

/** A session's id, and the name of its directory: 12 characters from `[a-z0-9]`. */
export type SessionId = string;

/** A session's name, chosen by the user. */
export type SessionName = string;

/** Identifies one run of a session; a restart changes it. */
export type Epoch = string;

/** Identifies one page load or one run of a client program; stays the same across reconnects. */
export type ClientId = string;

/** A terminal size: 2 to 1000 columns, 1 to 500 rows. */
export type Size = {
  cols: number,
  rows: number,
};

/** A session as `ls`, `GET /v1/sessions` and `attached` describe it. */
export type SessionInfo = {
  id: SessionId,
  /** Null if the session was not given a name. */
  name: SessionName | null,
  kind: Kind,
  state: State,
  /** Only in the state `exited`. */
  exit?: ExitStatus,
  /** When the session was created, RFC 3339 UTC. */
  created: string,
  /** When the program last printed, RFC 3339 UTC; up to ten seconds out of date while it is printing. */
  active?: string,
  /** The last time the program called for the user in this epoch. */
  call?: Call,
  /** The machine that owns the session, if it is not the machine that sends this. */
  host?: string,
  /** The directory that the shell last reported (OSC 7), or else the one the session was started in. */
  cwd: string,
  /** Empty if the program has not set one. */
  title: string,
  /** The number of attached clients. */
  clients: number,
  epoch: Epoch,
  /** The newest position that a cursor can have; for a terminal, the end of its log. */
  offset: number,
  /** The log could not be written to disk and continues in memory only. */
  degraded: boolean,
  /** The version of the session process. */
  version: string,
  /** Long texts were cut, as in lists and on the board; `GET /v1/sessions/{id}` has them whole. */
  truncated?: boolean,
} & Partial<TerminalInfo> & Partial<AgentInfo>;

/** The fields of a `SessionInfo` that only a terminal has. */
export type TerminalInfo = {
  /** The program and its arguments. */
  argv: Array<string>,
  size: Size,
};

/** The fields of a `SessionInfo` that only an agent session has. */
export type AgentInfo = {
  /** The agent's name in the server's table. */
  agent: string,
  /** The agent's name for the conversation; null until the agent has told it. */
  conversation: string | null,
  /** What the agent does now; null while no run is open. */
  activity: Activity | null,
  /** Prompts that wait behind the run in `activity`. */
  queued: number,
  /** What the agent asks and waits for, oldest first; at most 64. */
  approvals: Array<Approval>,
  /** The mode that the agent is in, if it has modes. */
  mode?: string,
  /** The model that the agent uses, if it has said so. */
  model?: string,
  /** What the agent has used since the session was created, if it says so. */
  usage?: Used,
  /** The commands that a prompt may begin with, such as `/compact`. Lists and the board leave them out. */
  commands?: SlashCommand[],
};

/** What an agent does. */
export type Activity = {
  /** The oldest open run. */
  run: string,
  /** One line for people. */
  text: string,
  /** An `abort` of this run would be accepted and is not under way yet. */
  can_interrupt: boolean,
  /** When the run was accepted, RFC 3339 UTC. */
  started_at: string,
};

/** Tokens and money, for one event or added up over a conversation. */
export type Used = {
  tokens: Tokens,
  /** In US dollars, as the agent estimates it. */
  cost?: number,
  /** How full the context is now. */
  context?: Context,
};

/** Numbers of tokens. */
export type Tokens = {
  /** Without those from the cache. */
  input: number,
  output: number,
  /** Read from the cache. */
  cache_read: number,
  /** Written to the cache. */
  cache_write: number,
};

/** How full the agent's context is, in tokens. */
export type Context = {
  used: number,
  /** Zero if it is unknown. */
  size: number,
};

/** A command of the agent, which a prompt begins with. */
export type SlashCommand = {
  /** Without the slash. */
  name: string,
  description?: string,
  /** What its argument is, in words. */
  hint?: string,
};

/** What an agent asks. */
export type Approval = {
  id: string,
  /** The run that waits for it; null if that run has ended and the agent still waits. */
  run: string | null,
  kind: ApprovalKind,
  /** The tool, in the agent's words. */
  tool: string,
  /** The tool call that waits for it. */
  call?: string,
  /** One line, in the agent's words. */
  title: string,
  detail: Detail,
  /** Something of this was too long, and was cut. */
  truncated: boolean,
  /** The possible answers to a permission or a plan. */
  options: Array<ApprovalOption>,
  /** Only for a question. */
  questions?: Array<Question>,
  /** When it was requested, RFC 3339 UTC. */
  at: string,
  /** When it is denied unless it is answered, RFC 3339 UTC; absent if it waits forever. */
  expires_at?: string,
};

/** What kind of answer is wanted. */
export type ApprovalKind = "permission" | "question" | "plan" | "unknown";

/** What the tool is going to do. */
export type Detail = {
  command?: string,
  cwd?: string,
  /** A unified diff. */
  diff?: string,
  text?: string,
};

/** A possible answer. */
export type ApprovalOption = {
  /** The agent's id for it. Several options may have the same kind, so this is what is chosen. */
  id: string,
  kind: OptionKind,
  label: string,
  /** What choosing it changes beyond this one request, in words. */
  effect?: string,
};

/** What an option means. */
export type OptionKind = "allow_once" | "allow_always" | "reject_once" | "reject_always" | "unknown";

/** A question of the agent. */
export type Question = {
  id: string,
  text: string,
  options: Array<QuestionOption>,
  /** Several options may be chosen. */
  multi: boolean,
  /** Any text is an answer. */
  free: boolean,
};

/** An answer that the agent offers. */
export type QuestionOption = {
  label: string,
  description?: string,
};

/** How an approval ended. */
export type Outcome = "allowed" | "denied" | "withdrawn" | "aborted" | "lost" | "expired" | "unknown";

/** An approval that was answered already: how, and by which client. */
export type Answered = {
  outcome: Outcome,
  /** Absent if no client answered it. */
  by?: string,
};

/** What clients need to show a conversation, and to fold its further events. */
export type ConversationState = {
  title: string,
  /** The agent's name for the conversation; null until the agent has told it. */
  conversation: string | null,
  /** What the agent does now; null while no run is open. It follows from the fields below. */
  activity: Activity | null,
  /** Prompts that wait behind the run in `activity`. */
  queued: number,
  /** The runs that have not ended. The first is in the agent, if it has started. */
  runs: Array<OpenRun>,
  /** The tool calls of the run in the agent that have not ended, oldest first; at most 64. */
  tools: Array<OpenTool>,
  /** What the agent did last in this run, besides using tools. */
  step?: Step,
  /** What the agent asks and waits for, oldest first; at most 64. */
  approvals: Array<Approval>,
  /** What the agent has used since the session was created, if it says so. */
  usage?: Used,
  /** What can be set in the agent, as it last said. */
  config?: AgentConfig,
  /** How the session ended, if it did. */
  exit?: ExitStatus,
  /** The journal could not be written for a while. */
  degraded: boolean,
};

/** A run that has not ended. */
export type OpenRun = {
  run: string,
  /** When it was accepted, RFC 3339 UTC. */
  at: string,
  /** The agent has its prompt. */
  started: boolean,
  /** A client has aborted it. */
  aborted: boolean,
};

/** A tool call that has not ended. */
export type OpenTool = {
  call: string,
  /** Cut to 200 characters. */
  title: string,
};

/** What an agent does while it uses no tool. */
export type Step = "thinking" | "writing" | "unknown";

/** What can be set in an agent, and the commands that it knows. */
export type AgentConfig = {
  /** Null if the agent has no modes. */
  modes: Choices | null,
  /** Null if the agent's model cannot be chosen. */
  models: Choices | null,
  options: Array<ConfigOption>,
  /** The commands that a prompt may begin with, such as `/compact`. */
  commands: SlashCommand[],
  /** Something was left out or cut. */
  truncated?: boolean,
};

/** A setting with its possible values. */
export type Choices = {
  /** The id of the current one, if it is known. */
  current: string | null,
  available: Array<Choice>,
};

/** A possible value of a setting. */
export type Choice = {
  id: string,
  name: string,
  description?: string,
};

/** A setting that is neither the mode nor the model. */
export type ConfigOption = {
  id: string,
  name: string,
  /** The id of the current one, if it is known. */
  current: string | null,
  available: Array<Choice>,
};

/** What happened in an agent session. */
export type AgentEvent = { "type": "started",
  epoch: Epoch,
  /** The id of the session process. */
  pid: number,
  /** The version of the session process. */
  version: string,
} | { "type": "repaired",
  epoch: Epoch,
} | { "type": "prompt",
  run: string,
  text: string,
  attachments: Array<string>,
  /** The id that the client chose. */
  command: string,
  /** Tells a repeat of the command from another with the same id: 16 hexadecimal digits. */
  digest: string,
  /** The name of the token or login that sent it, or `local`. */
  by: string,
} | { "type": "run_started",
  run: string,
  cause: Cause,
} | { "type": "text" } & Delta | { "type": "thinking" } & Delta | { "type": "tool_call" } & ToolCall | { "type": "tool_update" } & ToolCall | { "type": "plan",
  run: string | null,
  entries: unknown,
  /** Entries were cut or left out. */
  truncated?: boolean,
} | { "type": "approval_requested",
  approval: Approval,
} | { "type": "approval_resolved",
  approval: string,
  outcome: Outcome,
  /** The option that was chosen. */
  option?: string,
  /** Why it was denied, in the client's words. */
  reason?: string,
} & Partial<CommandSource> | { "type": "abort_requested",
  run: string,
  /** Every later run ends, too. */
  queue?: boolean,
  /** The id that the client chose. */
  command: string,
  /** Tells a repeat of the command from another with the same id: 16 hexadecimal digits. */
  digest: string,
  /** The name of the token or login that sent it, or `local`. */
  by: string,
} | { "type": "steered",
  run: string,
  text: string,
  /** The id that the client chose. */
  command: string,
  /** Tells a repeat of the command from another with the same id: 16 hexadecimal digits. */
  digest: string,
  /** The name of the token or login that sent it, or `local`. */
  by: string,
} | { "type": "set",
  mode?: string,
  model?: string,
  option?: OptionValue,
  /** The id that the client chose. */
  command: string,
  /** Tells a repeat of the command from another with the same id: 16 hexadecimal digits. */
  digest: string,
  /** The name of the token or login that sent it, or `local`. */
  by: string,
} | { "type": "usage" } & Usage | { "type": "config" } & AgentConfig | { "type": "conversation",
  id: string,
} | { "type": "title",
  title: string,
} | { "type": "notice",
  level: Level,
  text: string,
} | { "type": "raw",
  /** The agent's protocol. */
  source: string,
  message: unknown,
  truncated?: boolean,
} | { "type": "complete" } & Complete | { "type": "degraded",
  /** The operating system's error. */
  error: string,
} | { "type": "exit",
  code: number | null,
  signal: string | null,
} | { "type": "unknown" };

/** The command that an event records. */
export type CommandSource = {
  /** The id that the client chose. */
  command: string,
  /** Tells a repeat of the command from another with the same id: 16 hexadecimal digits. */
  digest: string,
  /** The name of the token or login that sent it, or `local`. */
  by: string,
};

/** Why a run began. */
export type Cause = "prompt" | "agent" | "unknown";

/** More of a text. */
export type Delta = {
  /** Null for text that belongs to no run. */
  run: string | null,
  /** Texts with the same block are one text. */
  block: string,
  /** The tool call of the sub-agent that wrote it. */
  parent?: string,
  delta: string,
};

/** A tool call, or the fields of one that changed. */
export type ToolCall = {
  run: string | null,
  call: string,
  /** The tool call of the sub-agent that made it. */
  parent?: string,
  /** The tool, in the agent's words. */
  name?: string,
  /** The kind of tool: `read`, `edit`, `execute` and others. */
  kind?: string,
  title?: string,
  /** `pending`, `in_progress`, `completed` or `failed`. */
  status?: string,
  input?: unknown,
  content?: unknown,
  locations?: unknown,
  /** Where the whole output is, if `content` has only its beginning and its end. */
  blob?: ToolBlob,
  /** A field was too large, and was cut. */
  truncated?: boolean,
};

/** The output of a tool, in a file of its own. */
export type ToolBlob = {
  /** The number of the event that has the beginning and the end. */
  seq: number,
  bytes: number,
  /** The file does not have everything either. */
  truncated?: boolean,
};

/** A new value of an option. */
export type OptionValue = {
  id: string,
  value: string,
};

/** What the agent has used since the last event of this kind. */
export type Usage = {
  /** Null if it belongs to no run. */
  run: string | null,
  tokens: Tokens,
  /** In US dollars, as the agent estimates it. */
  cost?: number,
  /** How full the context is now. */
  context?: Context,
};

/** How important a notice is. */
export type Level = "debug" | "info" | "warning" | "error" | "unknown";

/** The end of a run. */
export type Complete = {
  run: string,
  /** The prompt was given to the agent. If not, it is safe to send it again. */
  started: boolean,
  /** The agent reported a normal end. */
  success: boolean,
  /** A client ended the run. */
  aborted: boolean,
  /** The session ended, or its process died. */
  interrupted: boolean,
  /** The exit code of the agent's program, if its exit ended the run. */
  exit_code: number | null,
  /** The signal that ended the agent's program, if that ended the run. */
  signal: string | null,
  /** Why the agent stopped, in its words. */
  stop_reason: string | null,
  conversation: string | null,
  error?: RunError,
};

/** Why a run failed. */
export type RunError = {
  /** Such as `agent_exited` or `usage_limit`. */
  code: string,
  /** An explanation for people. */
  message: string,
  /** When it is worth trying again, RFC 3339 UTC. */
  retry_at?: string,
};

/** A request by the program for the user's attention. */
export type Call = {
  /** RFC 3339 UTC; unique among the calls of a session. */
  at: string,
  kind: CallKind,
  /** The text of the notification; empty for the bell. */
  text: string,
};

/** How a program calls for the user. */
export type CallKind = "bell" | "notify" | "unknown";

/** What runs in a session. */
export type Kind = "terminal" | "agent" | "unknown";

/** Whether a session is running. */
export type State = "running" | "exited" | "lost" | "unknown";

/** How a program ended: with a code or by a signal. Both are null if the status is not known. */
export type ExitStatus = {
  code: number | null,
  /** Such as `SIGKILL`. */
  signal: string | null,
};

/** Why something was refused: a stable code for programs. */
export type Code = "bad_request" | "bad_name" | "bad_size" | "input_hole" | "not_authenticated" | "not_allowed" | "bad_origin" | "bad_host" | "unknown_session" | "not_found" | "bad_method" | "too_slow" | "name_taken" | "id_reused" | "already_answered" | "not_running" | "session_gone" | "too_large" | "bad_type" | "out_of_range" | "bad_cwd" | "no_program" | "not_allowed_mode" | "bad_ticket" | "no_version" | "too_many" | "internal" | "unreachable" | "no_space" | (string & {});

/** A position in the output of one epoch of a session. */
export type Cursor = {
  epoch: Epoch,
  /** The first byte that the client does not have. */
  offset: number,
};

/** What the server does when a viewer cannot keep up with the output. */
export type Lag = "skip" | "wait";

/** The first message of a client. */
export type Hello = {
  /** The protocol version. */
  version: number,
  /** Stays the same across reconnects. */
  client: ClientId,
  /** The number of this connection attempt, counted by the client from 1. */
  conn: number,
  /** The client's id before a page reload; the new client inherits ownership of the size, nothing else. */
  was?: ClientId,
  /** Where to resume; null to start with a snapshot. */
  cursor: Cursor | null,
  /** The size of the client's window, if it has one. */
  size?: Size,
  /** What to do when the client cannot keep up. */
  lag: Lag,
  /** Lines of scrollback to include in a snapshot of scope `all`. */
  scrollback: number,
  /** Attach read-only: the client never types and never owns the size. */
  observe: boolean,
  /** The colours to report to programs that query them. */
  theme?: Theme,
  /** A browser's origin key; the gateway removes it. */
  key?: string,
  /** Set by the gateway from the caller's scope; absent on a local socket, whose clients may do everything. */
  grant?: Grant,
};

/** What the gateway allows a viewer to do, and for whom it connects. */
export type Grant = {
  /** May type, send commands and own the size. */
  write: boolean,
  /** Names the token, login or user; absent from older gateways. Only compared. */
  caller?: string,
  /** The name of the token, login or user, for people. */
  name?: string,
};

/** The viewer's colours as `#rrggbb`, for replies to OSC 10 and 11 queries. */
export type Theme = {
  fg: string,
  bg: string,
};

/** A text message from a client. */
export type ClientMessage = { "type": "hello" } & Hello | { "type": "ack",
  /** The first byte that is not rendered. */
  output: number,
} | { "type": "resize" } & Size | { "type": "claim_size" } & Size | { "type": "repaint" } | { "type": "leave" } | { "type": "command",
  /** Chosen by the client. */
  id: string,
  command: unknown,
} | { "type": "ping",
  /** Returned in the pong. */
  n: number,
} | { "type": "pong",
  /** Copied from the ping. */
  n: number,
};

/** A command to a terminal. */
export type TerminalCommand = { "type": "input",
  text: string,
} | { "type": "signal",
  /** Such as `INT` or `SIGINT`. */
  name: string,
};

/** The server's answer to a hello. */
export type Attached = {
  session: SessionInfo,
  epoch: Epoch,
  /** Where output continues. */
  offset: number,
  verdict: Verdict,
  /** Only with the verdict `snapshot`. */
  reason?: Reason,
  /** Output that the viewer does not get as bytes. */
  missed?: Missed,
  /** Only with the verdict `snapshot`; its parts follow this message. */
  snapshot?: SnapshotLength,
  /** The terminal's size at `offset`. */
  size: Size,
  /** The offset of the next input byte that the server expects; null if it does not remember this client. */
  input: number | null,
  /** What this viewer may do, and whether it owns the size. */
  you: Permissions,
  /** Milliseconds of silence after which either side sends a ping. */
  heartbeat: number,
  /** The most bytes of output that may be unacknowledged. */
  window: number,
};

/** The outcome of a resume. */
export type Verdict = "exact" | "snapshot";

/** Why a snapshot is sent. */
export type Reason = "fresh" | "trimmed" | "epoch" | "ahead" | "lagging" | "resize" | "repaint" | "unknown";

/** How much of the terminal a snapshot describes. */
export type Scope = "screen" | "all";

/** A range of output that a viewer does not get as bytes. */
export type Missed = {
  from: number,
  /** Exclusive. */
  to: number,
};

/** The length of the snapshot that follows. */
export type SnapshotLength = {
  /** The sum over all parts. */
  bytes: number,
};

/** What a viewer may do, and whether it owns the size. */
export type Permissions = {
  /** May type, send commands and own the size. */
  write: boolean,
  /** Owns the size. */
  size: boolean,
};

/** One attached client, as shown to the other clients. */
export type PresenceEntry = {
  /** The viewer's own id where the entry is the viewer itself. For others, an id that only presence uses. */
  client: ClientId,
  /** May type, send commands and own the size. */
  write: boolean,
  /** Owns the size. */
  size: boolean,
};

/** A text message to a client. */
export type ServerMessage = { "type": "attached" } & Attached | { "type": "resize" } & Size | { "type": "ack",
  /** The first byte of this client's input that is not written. */
  input: number,
} | { "type": "snapshot",
  reason: Reason,
  scope: Scope,
  /** Output that the snapshot skips. */
  missed?: Missed,
  /** Where output continues after the snapshot. */
  offset: number,
  /** The terminal's size at `offset`. */
  size: Size,
  /** The length of the snapshot, over all parts. */
  bytes: number,
} | { "type": "title",
  title: string,
} | { "type": "cwd",
  cwd: string,
} | { "type": "notify",
  /** May be empty. */
  title: string,
  body: string,
} | { "type": "url",
  /** Normalised. */
  url: string,
  /** The link looks like a login that the program is waiting for. */
  open: boolean,
} | { "type": "bell" } | { "type": "presence",
  /** All attached clients, in the order in which they attached. */
  clients: Array<PresenceEntry>,
} | { "type": "exit",
  /** Null if a signal ended the program, or if the session was lost. */
  code: number | null,
  /** The signal's name, such as `SIGKILL`. */
  signal: string | null,
  /** The end of the log. */
  offset: number,
} | { "type": "accepted",
  /** The command's id. */
  id: string,
  /** The number of the command in the session's journal. */
  seq: number,
  /** The command had been accepted before and was not run again. */
  duplicate: boolean,
} | { "type": "rejected",
  /** The command's id. */
  id: string,
  code: Code,
  /** An explanation for people. */
  message: string,
} | { "type": "error",
  code: Code,
  /** An explanation for people. */
  message: string,
  /** The server closes the connection after this message. */
  fatal: boolean,
} | { "type": "ping",
  /** Returned in the pong. */
  n: number,
} | { "type": "pong",
  /** Copied from the ping. */
  n: number,
} | { "type": "close",
  /** The code that a WebSocket would be closed with. */
  code: number,
  /** An explanation for people. */
  reason: string,
};

/** A message of the event stream to the client. */
export type BoardMessage = { "type": "welcome",
  /** The client id from the request, or a new one. */
  client: ClientId,
  /** Changes when the gateway restarts. */
  epoch: string,
  /** The gateway's version. */
  version: string,
  /** Milliseconds of silence after which either side sends a ping. */
  heartbeat: number,
} | { "type": "board",
  sessions: Array<SessionInfo>,
} | { "type": "session",
  session: SessionInfo,
} | { "type": "session_gone",
  id: SessionId,
} | { "type": "watched",
  session: SessionId,
  epoch: Epoch,
  /** The number of the next event. */
  seq: number,
  /** `snapshot`: the cursor is of no use, or there was none. The events before `seq` are not sent. */
  verdict: Verdict,
  /** Only with the verdict `snapshot`. */
  reason?: Reason,
} | { "type": "event",
  session: SessionId,
  seq: number,
  /** The first number that it stands for, if it stands for several. */
  from?: number,
  /** RFC 3339 UTC. */
  at: string,
  event: unknown,
} | { "type": "error",
  code: Code,
  /** An explanation for people. */
  message: string,
} | { "type": "ping",
  /** Returned in the pong. */
  n: number,
} | { "type": "pong",
  /** Copied from the ping. */
  n: number,
};

/** A message of the event stream to the server; only over a WebSocket. */
export type BoardClientMessage = { "type": "hello",
  /** The browser's origin key. */
  key: string,
} | { "type": "watch",
  sessions: Array<WatchedSession>,
} | { "type": "unwatch",
  sessions: Array<SessionId>,
} | { "type": "ping",
  /** Returned in the pong. */
  n: number,
} | { "type": "pong",
  /** Copied from the ping. */
  n: number,
};

/** A session to watch. */
export type WatchedSession = {
  id: SessionId,
  /** The next event to send; without it, those from now on are sent. */
  cursor?: Cursor,
};
