/** HTTP requests: URL, credentials, timeout, and the error of a failed one. */
import type { PostResponse } from "../core/post/response.js";
import { ApiError } from "./error.js";
import type { ApiOptions, Auth, Fetch, FetchResponse, FileContent } from "./types.js";

/** Milliseconds until the response must begin; after that the request fails. */
const TIMEOUT = 30_000;
/** The bytes of the response to a command that are read; the rest is ignored. */
const MAX_RESPONSE = 64 << 10;

/** The body may take this many times the timeout, because a whole log may have to come over a slow network. */
const BODY_FACTOR = 10;

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** Sent as it is, in place of `body`. */
  readonly file?: FileContent;
  /** Milliseconds until the response must begin, where the usual timeout is too short. */
  readonly timeout?: number;
  /** Gives the request up; it fails then. */
  readonly signal?: AbortSignal | undefined;
}

/** Makes requests to one gateway. */
export class Http {
  auth: Auth;
  readonly #base: URL;
  readonly #fetch: Fetch;
  readonly #timeout: number;

  constructor({ base, auth, fetch, timeout = TIMEOUT }: ApiOptions) {
    this.auth = auth;
    this.#base = new URL(base);
    this.#base.search = this.#base.hash = "";
    if (!this.#base.pathname.endsWith("/")) this.#base.pathname += "/";
    // Looked up at each call: a browser's fetch must be called on the global object.
    this.#fetch = fetch ?? ((url, init) => (globalThis as unknown as { fetch: Fetch }).fetch(url, init));
    this.#timeout = timeout;
  }

  /** The URL of a path. */
  url(path: string): string {
    return this.#url(path, {}).href;
  }

  /** The `ws:` or `wss:` URL of a path. */
  socketUrl(path: string, query: Readonly<Record<string, string>>): string {
    const url = this.#url(path, query);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  /** Makes a request and reads the response with `read`. Any failure, also a timeout, is an {@link ApiError}. */
  async request<T>(
    method: string,
    path: string,
    options: RequestOptions,
    read: (response: FetchResponse) => Promise<T>,
  ): Promise<T> {
    const { query = {}, headers = {}, body, file, timeout = this.#timeout, signal } = options;
    const type = file !== undefined ? "application/octet-stream" : body ? "application/json" : undefined;
    const content = file ?? (body ? JSON.stringify(body) : undefined);
    const abort = new AbortController();
    const giveUp = () => abort.abort();
    signal?.addEventListener("abort", giveUp);
    if (signal?.aborted) giveUp();
    let limit = timeout;
    const arm = (): unknown => setTimeout(giveUp, limit);
    let timer = arm();
    try {
      const response = await this.#fetch(this.#url(path, query).href, {
        method,
        headers: { ...this.#credentials(), ...(type === undefined ? {} : { "Content-Type": type }), ...headers },
        credentials: this.#usesCookie() ? "same-origin" : "omit",
        signal: abort.signal,
        ...(content === undefined ? {} : { body: content }),
      });
      clearTimeout(timer as number);
      limit *= BODY_FACTOR;
      timer = arm();
      if (response.ok) return await read(response);
      throw await errorOf(response);
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      const late = abort.signal.aborted && !signal?.aborted;
      const why = late ? `no response within ${limit / 1000} s` : String(cause);
      throw new ApiError(0, "unreachable", `cannot reach Bowline: ${why}`, { cause });
    } finally {
      clearTimeout(timer as number);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /**
   * Makes a POST request, and returns whatever response comes. It has no timeout of its own, and never rejects: a failure, also an
   * abort, is a missing response.
   */
  async exchange(path: string, body: object, signal: AbortSignal): Promise<PostResponse> {
    try {
      const response = await this.#fetch(this.#url(path, {}).href, {
        method: "POST",
        headers: { ...this.#credentials(), "Content-Type": "application/json" },
        credentials: this.#usesCookie() ? "same-origin" : "omit",
        signal,
        body: JSON.stringify(body),
      });
      const code = response.headers.get("Bowline-Code") ?? undefined;
      const text = await readStart(response, MAX_RESPONSE);
      return { kind: "http", status: response.status, code, retryAfter: retryAfterOf(response), body: text };
    } catch (cause) {
      return { kind: "missing", why: `cannot reach Bowline: ${String(cause)}` };
    }
  }

  /** Whether the gateway is on this machine, so that it can be reached without a network. */
  get isLoopback(): boolean {
    return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(this.#base.hostname);
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

/** The text of the first `max` bytes of a body. The rest is not received. */
async function readStart(response: FetchResponse, max: number): Promise<string> {
  // Without a stream, the whole body has to be read.
  if (!response.body) return (await response.text()).slice(0, max);
  const reader = response.body.getReader();
  const bytes = new Uint8Array(max);
  let length = 0;
  while (length < max) {
    const { done, value } = await reader.read();
    if (done) return new TextDecoder().decode(bytes.subarray(0, length));
    const part = value?.subarray(0, max - length) ?? new Uint8Array();
    bytes.set(part, length);
    length += part.length;
  }
  reader.cancel().catch(() => {});
  return new TextDecoder().decode(bytes);
}

/** The error of a response: from its RFC 9457 problem document, or only from its status if it has none. */
async function errorOf(response: FetchResponse): Promise<ApiError> {
  const retryAfter = retryAfterOf(response);
  const header = response.headers.get("Bowline-Code");
  let problem: { code?: unknown; detail?: unknown; title?: unknown } = {};
  try {
    problem = Object(JSON.parse(await response.text())) as typeof problem;
  } catch {
    // Not a problem document: the status has to do.
  }
  const code = header ?? (typeof problem.code === "string" ? problem.code : "http");
  const text = [problem.detail, problem.title].find((field) => typeof field === "string");
  const message = text ?? `HTTP status ${response.status}`;
  return new ApiError(response.status, code, message, { fromGateway: header !== null, retryAfter });
}

/** The header `Retry-After`, in milliseconds; `undefined` unless it is a whole number of seconds. */
function retryAfterOf(response: FetchResponse): number | undefined {
  const seconds = response.headers.get("Retry-After") ?? "";
  return /^\d+$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}
