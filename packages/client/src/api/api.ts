/** The HTTP API over `fetch`. Every failure is an {@link ApiError}. */
import type { TargetBuilder } from "../connection/environment.js";
import {
  approval,
  conversationState,
  epoch,
  sessionInfo,
  sessionList,
  type UnreadableSession,
} from "../core/message.js";
import type { Command } from "../core/post/entry.js";
import type { PostResponse } from "../core/post/response.js";
import {
  anything,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  oneOfOrUnknown,
  optional,
  type Shape,
  text,
} from "../core/shape.js";
import type { ClientId, SessionInfo } from "../core/wire.js";
import { ApiError } from "./error.js";
import { Http, type RequestOptions } from "./http.js";
import type {
  AgentList,
  AgentStatus,
  ApprovalList,
  EventPage,
  EventRecord,
  FileEntry,
  FileList,
  FolderEntry,
  FolderList,
  Login,
  LoginReply,
  NewCommand,
  NewAgent,
  NewSession,
  NewTerminal,
  NewToken,
  Restart,
  Revoked,
  SessionChange,
  TicketReply,
  TokenInfo,
  TokenList,
  TokenReply,
  UploadReply,
  WaitingApproval,
} from "./bodies.js";
import type { ApiOptions, Auth, FetchResponse, FileContent, LogPart, UploadedFile } from "./types.js";

const tokenInfo = object<TokenInfo>({
  id: text,
  kind: oneOf("token", "login"),
  name: text,
  scope: oneOf("read", "write", "admin"),
  created: text,
  expires: nullable(text),
  used: nullable(text),
  made_by: optional(text),
});

const eventPage = object<EventPage>({
  epoch,
  start: count,
  next: count,
  events: list(object<EventRecord>({ seq: count, from: optional(count), at: text, event: anything })),
  more: flag,
  state: optional(conversationState),
});

const uploadReply = object<UploadReply>({ id: text, name: text, type: text, bytes: count });

/** Milliseconds that an upload may take: the gateway lets it wait for 2 minutes, and then take 10. */
const UPLOAD_TIMEOUT = 12 * 60_000;

const agentStatus = object<AgentStatus>({
  name: text,
  label: text,
  protocol: oneOfOrUnknown("acp", "claude", "codex"),
  available: flag,
  version: optional(text),
  problem: optional(text),
  install: optional(text),
  modes: list(text),
  models: optional(list(text)),
});

const fileList = object<FileList>({
  files: list(object<FileEntry>({ path: text, kind: oneOfOrUnknown("file", "folder") })),
  truncated: flag,
});

const folderList = object<FolderList>({
  path: text,
  parent: nullable(text),
  roots: list(text),
  folders: list(object<FolderEntry>({ name: text, git: flag })),
  truncated: flag,
});

const approvalList = object<ApprovalList>({ approvals: list(object<WaitingApproval>({ session: text, approval })) });

/** The HTTP API of one gateway. */
export class Api {
  readonly #http: Http;

  constructor(options: ApiOptions) {
    this.#http = new Http(options);
  }

  /** The credentials of requests and connections. After a change, open connections keep theirs until they reconnect. */
  get auth(): Auth {
    return this.#http.auth;
  }

  set auth(auth: Auth) {
    this.#http.auth = auth;
  }

  /** Lists all sessions. A session whose description cannot be parsed is passed to `unreadable` and left out. */
  async sessions(unreadable: (error: UnreadableSession) => void = () => {}): Promise<SessionInfo[]> {
    return (await this.#json("GET", "v1/sessions", object({ sessions: sessionList(unreadable) }))).sessions;
  }

  /** Describes one session, given its id or name. */
  session(session: string): Promise<SessionInfo> {
    return this.#json("GET", pathOf(session), sessionInfo);
  }

  /** Starts a terminal session. Repeating the request with the same `key` returns the session that the first one started. */
  create(session: NewTerminal, key?: string): Promise<SessionInfo> {
    return this.#create({ kind: "terminal", ...session }, key);
  }

  /** Starts a conversation with an agent. Repeating the request with the same `key` returns the session that the first one started. */
  createAgent(session: NewAgent, key?: string): Promise<SessionInfo> {
    return this.#create({ kind: "agent", ...session }, key);
  }

  #create(body: NewSession, key: string | undefined): Promise<SessionInfo> {
    const headers = key === undefined ? {} : { "Idempotency-Key": key };
    return this.#json("POST", "v1/sessions", sessionInfo, { body, headers });
  }

  /** Renames a session, or changes after how long without viewers it ends. */
  change(session: string, change: SessionChange): Promise<SessionInfo> {
    return this.#json("PATCH", pathOf(session), sessionInfo, { body: change });
  }

  /** Ends a session and removes its files. With `keep`, the files stay. */
  async end(session: string, options: { keep?: boolean } = {}): Promise<void> {
    await this.#http.request("DELETE", pathOf(session), options.keep ? { query: { keep: "true" } } : {}, ignoreBody);
  }

  /** Restarts a lost or exited session. With `epoch`, only if that is still its latest epoch; otherwise nothing changes. */
  restart(session: string, epoch?: string, signal?: AbortSignal): Promise<SessionInfo> {
    const body: Restart = epoch === undefined ? {} : { epoch };
    return this.#json("POST", `${pathOf(session)}/restart`, sessionInfo, { body, signal });
  }

  /**
   * Makes one try to send a command, and returns whatever response comes; it never rejects. `Post` sends a command until it is settled.
   */
  postCommand(session: string, id: string, command: Command, signal: AbortSignal): Promise<PostResponse> {
    const body: NewCommand = { id, command };
    return this.#http.exchange(`${pathOf(session)}/commands`, body, signal);
  }

  /** Whether the gateway is on this machine, so that it can be reached without a network. */
  get isLoopback(): boolean {
    return this.#http.isLoopback;
  }

  /** The current screen, as plain text or with ANSI escape sequences. */
  screen(session: string, format: "text" | "ansi" = "text"): Promise<string> {
    return this.#http.request("GET", `${pathOf(session)}/screen`, { query: { format } }, (response) => response.text());
  }

  /** The whole output of a tool, of which the event `seq` has only the beginning and the end (`blob` says so). */
  blob(session: string, seq: number): Promise<string> {
    return this.#http.request("GET", `${pathOf(session)}/blobs/${seq}`, {}, (response) => response.text());
  }

  /** Reads output from the log: by default all that is still kept. `from` and `to` are offsets. */
  log(session: string, range: { from?: number; to?: number } = {}): Promise<LogPart> {
    const query: Record<string, string> = {};
    if (range.from !== undefined) query["from"] = String(range.from);
    if (range.to !== undefined) query["to"] = String(range.to);
    return this.#http.request("GET", `${pathOf(session)}/log`, { query }, async (response) => {
      const from = /^bytes (\d+)-/.exec(response.headers.get("Content-Range") ?? "")?.[1];
      return { bytes: new Uint8Array(await response.arrayBuffer()), from: Number(from ?? range.from ?? 0) };
    });
  }

  /** Lists the agents that sessions may run, with their versions and problems. May take 12 seconds. */
  async agents(): Promise<AgentStatus[]> {
    return (await this.#json("GET", "v1/agents", object<AgentList>({ agents: list(agentStatus) }))).agents;
  }

  /**
   * Reads a page of the history of an agent session: by default the last events; with `before` those that come before that
   * number, with `after` those that come after it. `signal` gives the request up.
   */
  history(
    session: string,
    page: { before?: number; after?: number; limit?: number } = {},
    signal?: AbortSignal,
  ): Promise<EventPage> {
    const given = Object.entries(page).filter(([, value]) => value !== undefined);
    const query = Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
    return this.#json("GET", `${pathOf(session)}/events`, eventPage, { query, signal });
  }

  /** What the agents of all sessions wait for, with whole texts: by session, oldest session first. */
  async approvals(): Promise<WaitingApproval[]> {
    return (await this.#json("GET", "v1/approvals", approvalList)).approvals;
  }

  /**
   * Uploads a file, at most 10 MiB, to an agent session. A prompt attaches it by the `id` of the reply. The same file under
   * the same name has the same id, so an upload whose answer did not come can be repeated.
   */
  upload(session: string, name: string, file: FileContent): Promise<UploadReply> {
    return this.#json("PUT", uploadPath(session, name), uploadReply, { file, timeout: UPLOAD_TIMEOUT });
  }

  /** Fetches a file that was uploaded to an agent session. */
  uploaded(session: string, id: string): Promise<UploadedFile> {
    return this.#http.request("GET", uploadPath(session, id), {}, async (response) => ({
      bytes: new Uint8Array(await response.arrayBuffer()),
      type: response.headers.get("Content-Type") ?? "application/octet-stream",
    }));
  }

  /** The URL of a file that was uploaded. It needs the same credentials as any call. */
  uploadUrl(session: string, id: string): string {
    return this.#http.url(uploadPath(session, id));
  }

  /**
   * Lists files and folders below the directory of a session, at most 50: those whose path contains the characters of `query` in
   * this order, the best matches first. An empty query lists the top of the tree. `signal` gives the request up.
   */
  files(session: string, query: string, signal?: AbortSignal): Promise<FileList> {
    return this.#json("GET", `${pathOf(session)}/files`, fileList, { query: { q: query }, signal });
  }

  /** Lists the folders in a folder that sessions may be started in; without `path`, in the first one that is allowed. */
  folders(path?: string, options: { hidden?: boolean } = {}): Promise<FolderList> {
    const query = { ...(path === undefined ? {} : { path }), ...(options.hidden ? { hidden: "true" } : {}) };
    return this.#json("GET", "v1/folders", folderList, { query });
  }

  /**
   * Exchanges the one-time code of a login link for a cookie and a key, and uses them from now on. The browser keeps the
   * cookie; store the key yourself, for example with `openStore("local")`.
   */
  async login(code: string): Promise<LoginReply> {
    const body: Login = { code };
    const { key } = await this.#json("POST", "v1/login", object<LoginReply>({ key: text }), { body });
    this.auth = { kind: "browser", key };
    return { key };
  }

  /** Ends the login on the server, and drops it here. */
  async logout(): Promise<void> {
    await this.#http.request("POST", "v1/logout", { body: {} }, ignoreBody);
    this.auth = { kind: "none" };
  }

  /** Fetches a ticket, which is valid for one WebSocket connection. */
  async ticket(): Promise<string> {
    return (await this.#json("POST", "v1/tickets", object<Pick<TicketReply, "ticket">>({ ticket: text }), { body: {} }))
      .ticket;
  }

  /** Lists the tokens and browser logins, without their secrets. */
  async tokens(): Promise<TokenInfo[]> {
    return (await this.#json("GET", "v1/tokens", object<TokenList>({ tokens: list(tokenInfo) }))).tokens;
  }

  /** Creates a token. Its secret is in the reply, and cannot be fetched again. */
  createToken(token: NewToken): Promise<TokenReply> {
    return this.#json("POST", "v1/tokens", object<TokenReply>({ id: text, token: text }), { body: token });
  }

  /** Revokes a token or a browser login, and closes its connections. */
  async revokeToken(id: string): Promise<void> {
    await this.#http.request("DELETE", `v1/tokens/${encodeURIComponent(id)}`, {}, ignoreBody);
  }

  /** Revokes a token or a browser login, and all tokens and logins that were made under it. */
  revokeTokenWithMade(id: string): Promise<Revoked> {
    const revoked = object<Revoked>({ revoked: list(text), made: list(tokenInfo) });
    return this.#json("DELETE", `v1/tokens/${encodeURIComponent(id)}?with_made=true`, revoked);
  }

  /** The `target` option of a `TerminalConnection` to a session, given its id or name. */
  attachTarget(session: string): TargetBuilder {
    return this.#target(`${pathOf(session)}/attach`, {}, ["bowline.v1"], () => this.session(session));
  }

  /** The `target` option of an `EventsConnection`. */
  eventsTarget(client: ClientId): TargetBuilder {
    return this.#target("v1/events", { client }, [], () => this.sessions());
  }

  /**
   * `probe` makes a request that the gateway refuses for the same reasons as the WebSocket. It finds the reason where the
   * WebSocket class reports none.
   */
  #target(
    path: string,
    query: Record<string, string>,
    protocols: string[],
    probe: () => Promise<unknown>,
  ): TargetBuilder {
    const explain = async () => {
      try {
        await probe();
        return undefined;
      } catch (error) {
        return error instanceof ApiError ? error.closed : undefined;
      }
    };
    return async () => {
      const { auth } = this;
      switch (auth.kind) {
        case "browser":
          return { url: this.#http.socketUrl(path, query), protocols, key: auth.key };
        case "bearer": {
          const headers = { Authorization: `Bearer ${auth.token}` };
          return { url: this.#http.socketUrl(path, query), protocols, headers, explain };
        }
        case "ticket":
          return { url: this.#http.socketUrl(path, { ...query, ticket: await this.ticket() }), protocols };
        case "none":
          throw new ApiError(401, "not_authenticated", "not logged in", { fromGateway: true });
      }
    };
  }

  async #json<T>(method: string, path: string, shape: Shape<T>, options: RequestOptions = {}): Promise<T> {
    const read = async (response: FetchResponse) => ({ status: response.status, body: await response.text() });
    const { status, body } = await this.#http.request(method, path, options, read);
    try {
      return shape(JSON.parse(body));
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ApiError(status, "bad_answer", `the response to ${method} ${path} is not valid: ${why}`, { cause });
    }
  }
}

async function ignoreBody(): Promise<void> {}

function pathOf(session: string): string {
  return `v1/sessions/${encodeURIComponent(session)}`;
}

function uploadPath(session: string, name: string): string {
  return `${pathOf(session)}/uploads/${encodeURIComponent(name)}`;
}
