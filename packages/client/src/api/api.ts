/** The HTTP API, by `fetch`. Every failure is an {@link ApiError}. */
import type { TargetBuilder } from "../connection/environment.js";
import { sessionInfo, sessionList, type UnreadableSession } from "../core/message.js";
import { list, nullable, object, oneOf, type Shape, text } from "../core/shape.js";
import type { ClientId, SessionInfo } from "../core/wire.js";
import { ApiError } from "./error.js";
import { type Call, Http } from "./http.js";
import type {
  Login,
  LoginReply,
  NewSession,
  NewTerminal,
  NewToken,
  Restart,
  SessionChange,
  TicketReply,
  TokenInfo,
  TokenList,
  TokenReply,
} from "./bodies.js";
import type { ApiOptions, Auth, FetchResponse, LogPart } from "./types.js";

const tokenList = object<TokenList>({
  tokens: list(
    object<TokenInfo>({
      id: text,
      kind: oneOf("token", "login"),
      name: text,
      scope: oneOf("read", "write", "admin"),
      created: text,
      expires: nullable(text),
      used: nullable(text),
    }),
  ),
});

/** The HTTP API of one gateway. */
export class Api {
  readonly #http: Http;

  constructor(options: ApiOptions) {
    this.#http = new Http(options);
  }

  /** How requests and dials are let in. Set it after a login; connections use it from their next dial on. */
  get auth(): Auth {
    return this.#http.auth;
  }

  set auth(auth: Auth) {
    this.#http.auth = auth;
  }

  /** Every session. One that cannot be read is passed to `unreadable` and left out. */
  async sessions(unreadable: (error: UnreadableSession) => void = () => {}): Promise<SessionInfo[]> {
    return (await this.#json("GET", "v1/sessions", object({ sessions: sessionList(unreadable) }))).sessions;
  }

  /** One session, by id or name. */
  session(session: string): Promise<SessionInfo> {
    return this.#json("GET", pathOf(session), sessionInfo);
  }

  /** Starts a terminal session. With a `key`, a repeat returns the first one. */
  create(session: NewTerminal, key?: string): Promise<SessionInfo> {
    const body: NewSession = { kind: "terminal", ...session };
    const headers = key === undefined ? {} : { "Idempotency-Key": key };
    return this.#json("POST", "v1/sessions", sessionInfo, { body, headers });
  }

  /** Renames it, or changes when it ends by itself. */
  change(session: string, change: SessionChange): Promise<SessionInfo> {
    return this.#json("PATCH", pathOf(session), sessionInfo, { body: change });
  }

  /** Ends it and forgets it; with `keep`, ends it only. */
  async end(session: string, options: { keep?: boolean } = {}): Promise<void> {
    await this.#http.call("DELETE", pathOf(session), options.keep ? { query: { keep: "true" } } : {}, nothing);
  }

  /** A lost or exited session lives again. With `epoch`, only that life is restarted. */
  restart(session: string, epoch?: string): Promise<SessionInfo> {
    const body: Restart = epoch === undefined ? {} : { epoch };
    return this.#json("POST", `${pathOf(session)}/restart`, sessionInfo, { body });
  }

  /** The screen now, as text or ANSI. */
  screen(session: string, format: "text" | "ansi" = "text"): Promise<string> {
    return this.#http.call("GET", `${pathOf(session)}/screen`, { query: { format } }, (response) => response.text());
  }

  /** Output that is still kept. */
  log(session: string, range: { from?: number; to?: number } = {}): Promise<LogPart> {
    const query: Record<string, string> = {};
    if (range.from !== undefined) query["from"] = String(range.from);
    if (range.to !== undefined) query["to"] = String(range.to);
    return this.#http.call("GET", `${pathOf(session)}/log`, { query }, async (response) => {
      const from = /^bytes (\d+)-/.exec(response.headers.get("Content-Range") ?? "")?.[1];
      return { bytes: new Uint8Array(await response.arrayBuffer()), from: Number(from ?? range.from ?? 0) };
    });
  }

  /** Exchanges a one-time code for a cookie and a key, and uses them from now on. Keep the key in the origin's own storage. */
  async login(code: string): Promise<LoginReply> {
    const body: Login = { code };
    const { key } = await this.#json("POST", "v1/login", object<LoginReply>({ key: text }), { body });
    this.auth = { kind: "browser", key };
    return { key };
  }

  /** Forgets the login, here and there. */
  async logout(): Promise<void> {
    await this.#http.call("POST", "v1/logout", { body: {} }, nothing);
    this.auth = { kind: "none" };
  }

  /** A single-use ticket for one dial. */
  async ticket(): Promise<string> {
    return (await this.#json("POST", "v1/tickets", object<Pick<TicketReply, "ticket">>({ ticket: text }), { body: {} }))
      .ticket;
  }

  /** The tokens and the browsers that logged in, without their secrets. */
  async tokens(): Promise<TokenInfo[]> {
    return (await this.#json("GET", "v1/tokens", tokenList)).tokens;
  }

  /** A new token; its secret is shown this once. */
  createToken(token: NewToken): Promise<TokenReply> {
    return this.#json("POST", "v1/tokens", object<TokenReply>({ id: text, token: text }), { body: token });
  }

  /** Ends a token or a login, and its connections. */
  async revokeToken(id: string): Promise<void> {
    await this.#http.call("DELETE", `v1/tokens/${encodeURIComponent(id)}`, {}, nothing);
  }

  /** Where to dial to attach to a session. */
  attachTarget(session: string): TargetBuilder {
    return this.#target(`${pathOf(session)}/attach`, {}, ["bowline.v1"], () => this.session(session));
  }

  /** Where to dial for the event stream. */
  eventsTarget(client: ClientId): TargetBuilder {
    return this.#target("v1/events", { client }, [], () => this.sessions());
  }

  /** `ask` is a request that is refused for the same reasons as the dial, for sockets that cannot say why they failed. */
  #target(
    path: string,
    query: Record<string, string>,
    protocols: string[],
    ask: () => Promise<unknown>,
  ): TargetBuilder {
    const explain = async () => {
      try {
        await ask();
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
          throw new ApiError(401, "not_authenticated", "nobody is logged in", { ours: true });
      }
    };
  }

  async #json<T>(method: string, path: string, shape: Shape<T>, call: Call = {}): Promise<T> {
    const read = async (response: FetchResponse) => ({ status: response.status, body: await response.text() });
    const { status, body } = await this.#http.call(method, path, call, read);
    try {
      return shape(JSON.parse(body));
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ApiError(status, "bad_answer", `the answer to ${method} ${path} makes no sense: ${why}`, { cause });
    }
  }
}

/** An answer of which only the status counts. */
async function nothing(): Promise<void> {}

function pathOf(session: string): string {
  return `v1/sessions/${encodeURIComponent(session)}`;
}
