/**
 * Parses the text messages. The types are in wire.ts, generated from the Rust ones; here each field is checked, once, on
 * arrival.
 *
 * For messages from newer servers: unknown fields are dropped, a message of an unknown `type` reads as `undefined`, and an
 * unknown value of a descriptive field (a state, a kind, a reason) reads as "unknown". Sessions of every kind can be parsed;
 * only a terminal has `argv` and `size`, only an agent session `agent` and what follows from it.
 */
import { isClientId, isEpoch, isSessionId, isSessionName } from "./ids.js";
import {
  amount,
  anything,
  attempt,
  checked,
  count,
  defaulted,
  type Fields,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  oneOfOrUnknown,
  optional,
  type Shape,
  ShapeError,
  tagged,
  text,
} from "./shape.js";
import type {
  Activity,
  AgentConfig,
  AgentInfo,
  Approval,
  ApprovalOption,
  Attached,
  BoardMessage,
  Call,
  Choice,
  Choices,
  ClientMessage,
  ConfigOption,
  Context,
  ConversationState,
  Cursor,
  Detail,
  ExitStatus,
  Grant,
  Hello,
  Missed,
  OpenRun,
  OpenTool,
  Permissions,
  PresenceEntry,
  Question,
  QuestionOption,
  ServerMessage,
  SessionId,
  SessionInfo,
  Size,
  SlashCommand,
  SnapshotLength,
  TerminalInfo,
  Theme,
  Tokens,
  Used,
} from "./wire.js";

/** The protocol version that this code implements. */
export const VERSION = 1;

const clientId = checked("a client id (a lower-case UUID)", isClientId);
export const epoch = checked("an epoch (8 lower-case hex digits)", isEpoch);
const sessionId = checked("a session id (12 characters of a-z and 0-9)", isSessionId);
const sessionName = checked("a session name", isSessionName);
export const u32 = integer(0, 0xffff_ffff);
export const exitCode = nullable(integer(-0x8000_0000, 0x7fff_ffff));
const exitStatus = object<ExitStatus>({ code: exitCode, signal: nullable(text) });
const reason = oneOfOrUnknown("fresh", "trimmed", "epoch", "ahead", "lagging", "resize", "repaint");
const lag = oneOf("skip", "wait");

const sizeFields: Fields<Size> = { cols: integer(2, 1000), rows: integer(1, 500) };
const size = object(sizeFields);
const missed = object<Missed>({ from: count, to: count });
const cursor = object<Cursor>({ epoch, offset: count });
const beat = { n: count };

/** The fields of every session. */
const anySession = object<Omit<SessionInfo, keyof TerminalInfo | keyof AgentInfo>>({
  id: sessionId,
  name: nullable(sessionName),
  kind: oneOfOrUnknown("terminal", "agent"),
  state: oneOfOrUnknown("running", "exited", "lost"),
  exit: optional(exitStatus),
  created: text,
  active: optional(text),
  call: optional(object<Call>({ at: text, kind: oneOfOrUnknown("bell", "notify"), text })),
  cwd: text,
  title: defaulted(text, ""),
  clients: defaulted(u32, 0),
  epoch,
  offset: defaulted(count, 0),
  degraded: defaulted(flag, false),
  version: text,
  truncated: optional(flag),
  host: optional(text),
});
/** The fields that only a terminal has: all or none of them. */
const terminalInfo = attempt(object<TerminalInfo>({ argv: list(text), size }));
export const approval = object<Approval>({
  id: text,
  run: nullable(text),
  kind: oneOfOrUnknown("permission", "question", "plan"),
  tool: text,
  call: optional(text),
  title: text,
  detail: defaulted(
    object<Detail>({ command: optional(text), cwd: optional(text), diff: optional(text), text: optional(text) }),
    {},
  ),
  truncated: defaulted(flag, false),
  options: defaulted(
    list(
      object<ApprovalOption>({
        id: text,
        kind: oneOfOrUnknown("allow_once", "allow_always", "reject_once", "reject_always"),
        label: text,
        effect: optional(text),
      }),
    ),
    [],
  ),
  questions: optional(
    list(
      object<Question>({
        id: text,
        text,
        options: defaulted(list(object<QuestionOption>({ label: text, description: optional(text) })), []),
        multi: defaulted(flag, false),
        free: defaulted(flag, false),
      }),
    ),
  ),
  at: text,
  expires_at: optional(text),
});

export const context = object<Context>({ used: count, size: count });
const used = object<Used>({
  tokens: object<Tokens>({ input: count, output: count, cache_read: count, cache_write: count }),
  cost: optional(amount),
  context: optional(context),
});

const activity = object<Activity>({ run: text, text, can_interrupt: flag, started_at: text });
const slashCommands = list(object<SlashCommand>({ name: text, description: optional(text), hint: optional(text) }));
const choicesFields: Fields<Choices> = {
  current: defaulted(nullable(text), null),
  available: defaulted(list(object<Choice>({ id: text, name: text, description: optional(text) })), []),
};
const choices = defaulted(nullable(object(choicesFields)), null);

export const agentConfigFields: Fields<AgentConfig> = {
  modes: choices,
  models: choices,
  options: defaulted(list(object<ConfigOption>({ id: text, name: text, ...choicesFields })), []),
  commands: defaulted(slashCommands, []),
  truncated: optional(flag),
};

/** Parses the state of a conversation. */
export const conversationState = object<ConversationState>({
  title: text,
  conversation: nullable(text),
  activity: nullable(activity),
  queued: u32,
  runs: list(object<OpenRun>({ run: text, at: text, started: flag, aborted: flag })),
  tools: list(object<OpenTool>({ call: text, title: text })),
  step: optional(oneOfOrUnknown("thinking", "writing")),
  approvals: list(approval),
  usage: optional(used),
  config: optional(object(agentConfigFields)),
  exit: optional(exitStatus),
  degraded: defaulted(flag, false),
});

/** The fields that only an agent session has: all or none of them. */
const agentInfo = attempt(
  object<AgentInfo>({
    agent: text,
    conversation: defaulted(nullable(text), null),
    activity: defaulted(nullable(activity), null),
    queued: defaulted(u32, 0),
    approvals: defaulted(list(approval), []),
    mode: optional(text),
    model: optional(text),
    usage: optional(used),
    commands: optional(slashCommands),
  }),
);

/** The description of a session that cannot be parsed. */
export class UnreadableSession extends ShapeError {
  /** The session's id, if at least that can be parsed. */
  readonly id: SessionId | undefined;

  constructor(value: unknown, cause: ShapeError) {
    super(cause.message, { cause });
    const { id } = Object(value) as { id?: unknown };
    this.id = typeof id === "string" && isSessionId(id) ? id : undefined;
  }
}

/** Parses the description of a session, or throws {@link UnreadableSession}. */
export const sessionInfo: Shape<SessionInfo> = (value) => {
  try {
    return { ...anySession(value), ...terminalInfo(value), ...agentInfo(value) };
  } catch (error) {
    throw error instanceof ShapeError ? new UnreadableSession(value, error) : error;
  }
};

/** Parses a list of sessions. One that cannot be parsed is passed to `unreadable` and left out of the list. */
export function sessionList(unreadable: (error: UnreadableSession) => void): Shape<SessionInfo[]> {
  const items = list(anything);
  const read = (item: unknown): SessionInfo[] => {
    try {
      return [sessionInfo(item)];
    } catch (error) {
      if (!(error instanceof UnreadableSession)) throw error;
      unreadable(error);
      return [];
    }
  };
  return (value) => items(value).flatMap(read);
}

const attached: Fields<Attached> = {
  session: sessionInfo,
  epoch,
  offset: count,
  verdict: oneOf("exact", "snapshot"),
  reason: optional(reason),
  missed: optional(missed),
  snapshot: optional(object<SnapshotLength>({ bytes: count })),
  size,
  input: nullable(count),
  you: object<Permissions>({ write: flag, size: flag }),
  heartbeat: count,
  window: count,
};

const hello: Fields<Hello> = {
  version: u32,
  client: clientId,
  conn: count,
  was: optional(clientId),
  cursor: nullable(cursor),
  size: optional(size),
  lag: defaulted(lag, "skip"),
  scrollback: defaulted(u32, 1000),
  observe: defaulted(flag, false),
  theme: optional(object<Theme>({ fg: text, bg: text })),
  key: optional(text),
  grant: optional(object<Grant>({ write: flag, caller: optional(text), name: optional(text) })),
};

/** Parses a message to the client; `undefined` if its type is unknown. */
export const readServerMessage = tagged<ServerMessage>({
  attached,
  resize: sizeFields,
  ack: { input: count },
  snapshot: {
    reason,
    scope: oneOf("screen", "all"),
    missed: optional(missed),
    offset: count,
    size,
    bytes: count,
  },
  title: { title: text },
  cwd: { cwd: text },
  notify: { title: text, body: text },
  url: { url: text, open: flag },
  bell: {},
  presence: { clients: list(object<PresenceEntry>({ client: clientId, write: flag, size: flag })) },
  exit: { code: exitCode, signal: nullable(text), offset: count },
  accepted: { id: text, seq: count, duplicate: flag },
  rejected: { id: text, code: text, message: text },
  error: { code: text, message: text, fatal: flag },
  ping: beat,
  pong: beat,
  close: { code: integer(0, 0xffff), reason: text },
});

/** Parses a message to the server; `undefined` if its type is unknown. */
export const readClientMessage = tagged<ClientMessage>({
  hello,
  ack: { output: count },
  resize: sizeFields,
  claim_size: sizeFields,
  repaint: {},
  leave: {},
  command: { id: text, command: anything },
  ping: beat,
  pong: beat,
});

/**
 * Returns a parser for the messages of the event stream; it returns `undefined` if the type is unknown. A session in a `board`
 * that cannot be parsed is passed to `unreadable`; for a `session` message, the parser throws {@link UnreadableSession}.
 */
export function boardReader(unreadable: (error: UnreadableSession) => void): Shape<BoardMessage | undefined> {
  return tagged<BoardMessage>({
    welcome: { client: clientId, epoch: text, version: text, heartbeat: count },
    board: { sessions: sessionList(unreadable) },
    session: { session: sessionInfo },
    session_gone: { id: sessionId },
    watched: { session: sessionId, epoch, seq: count, verdict: oneOf("exact", "snapshot"), reason: optional(reason) },
    event: { session: sessionId, seq: count, from: optional(count), at: text, event: anything },
    error: { code: text, message: text },
    ping: beat,
    pong: beat,
  });
}
