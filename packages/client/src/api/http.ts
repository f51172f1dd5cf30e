/** One request: where it goes, how it is let in, and what a refusal becomes. */
import { ApiError } from "./error.js";
import type { ApiOptions, Auth, Fetch, FetchResponse } from "./types.js";

/** Milliseconds after which a request has failed. */
const TIMEOUT = 30_000;
/** How many times as long the rest of an answer may take as its beginning: a whole log may be on its way over a slow line. */
const BODY = 10;

/** What a request carries. */
export interface Call {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
}

/** Requests to one gateway. */
export class Http {
  /** How requests and dials are let in. */
  auth: Auth;
  readonly #base: URL;
  readonly #fetch: Fetch;
  readonly #timeout: number;

  constructor({ base, auth, fetch, timeout = TIMEOUT }: ApiOptions) {
    this.auth = auth;
    this.#base = new URL(base);
    this.#base.search = this.#base.hash = "";
    if (!this.#base.pathname.endsWith("/")) this.#base.pathname += "/";
    // Bound late: a browser's fetch must be called on its own global.
    this.#fetch = fetch ?? ((url, init) => (globalThis as unknown as { fetch: Fetch }).fetch(url, init));
    this.#timeout = timeout;
  }

  /** The URL of a WebSocket. */
  socketUrl(path: string, query: Readonly<Record<string, string>>): string {
    const url = this.#url(path, query);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  /** Makes a request and reads the answer, all of it in time; whatever is not a success is an {@link ApiError}. */
  async call<T>(method: string, path: string, call: Call, read: (response: FetchResponse) => Promise<T>): Promise<T> {
    const { query = {}, headers = {}, body } = call;
    const abort = new AbortController();
    let limit = this.#timeout;
    const arm = (): unknown => setTimeout(() => abort.abort(), limit);
    let timer = arm();
    try {
      const response = await this.#fetch(this.#url(path, query).href, {
        method,
        headers: { ...this.#credentials(), ...(body ? { "Content-Type": "application/json" } : {}), ...headers },
        credentials: this.#usesCookie() ? "same-origin" : "omit",
        signal: abort.signal,
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      clearTimeout(timer as number);
      limit *= BODY;
      timer = arm();
      if (response.ok) return await read(response);
      throw await refusal(response);
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      const why = abort.signal.aborted ? `no answer in ${limit / 1000} s` : String(cause);
      throw new ApiError(0, "unreachable", `Bowline cannot be reached: ${why}`, { cause });
    } finally {
      clearTimeout(timer as number);
    }
  }

  #url(path: string, query: Readonly<Record<string, string>>): URL {
    const url = new URL(path, this.#base.href);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  #usesCookie(): boolean {
    const { auth } = this;
    return auth.kind === "browser" || auth.kind === "none" || (auth.kind === "ticket" && auth.token === undefined);
  }

  #credentials(): Record<string, string> {
    const { auth } = this;
    switch (auth.kind) {
      case "browser":
        return { "Bowline-Key": auth.key };
      case "bearer":
        return { Authorization: `Bearer ${auth.token}` };
      case "ticket":
        if (auth.token !== undefined) return { Authorization: `Bearer ${auth.token}` };
        return auth.key === undefined ? {} : { "Bowline-Key": auth.key };
      case "none":
        return {};
    }
  }
}

/** What a response says about why not: a problem (RFC 9457) of ours, or just a status of somebody in between. */
async function refusal(response: FetchResponse): Promise<ApiError> {
  const seconds = Number(response.headers.get("Retry-After") ?? NaN);
  const retryAfter = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  const header = response.headers.get("Bowline-Code");
  let problem: { code?: unknown; detail?: unknown; title?: unknown } = {};
  try {
    problem = Object(JSON.parse(await response.text())) as typeof problem;
  } catch {
    // Not a problem document; the status has to do.
  }
  const code = header ?? (typeof problem.code === "string" ? problem.code : "http");
  const message = [problem.detail, problem.title].find((words) => typeof words === "string");
  const words = message ?? `HTTP status ${response.status}`;
  return new ApiError(response.status, code, words, { ours: header !== null, retryAfter });
}
