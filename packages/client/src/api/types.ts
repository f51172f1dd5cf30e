/** The options and results of the HTTP API; the types of request and response bodies are in `bodies.ts`. */

/** The credentials of requests and WebSocket connections. */
export type Auth =
  /** For a page: the login cookie, and the key that `login` returned. */
  | { readonly kind: "browser"; readonly key: string }
  /** For a program: a token, sent in the `Authorization` header. */
  | { readonly kind: "bearer"; readonly token: string }
  /**
   * For a program whose WebSocket class cannot send headers: requests use the token, and each WebSocket URL carries a ticket
   * that is fetched just before. With a `key` in place of the token: for a page whose cookie is not sent with WebSockets.
   */
  | { readonly kind: "ticket"; readonly token?: string; readonly key?: string }
  /** Not logged in: only `login` works. */
  | { readonly kind: "none" };

export interface ApiOptions {
  /** The URL of the gateway, including its sub-path if it has one: `https://host/terminals/`. */
  readonly base: string;
  readonly auth: Auth;
  /** The global `fetch` by default. */
  readonly fetch?: Fetch;
  /** Milliseconds until a response must begin; 30,000 by default. Its body may take ten times as long. */
  readonly timeout?: number;
}

/** The part of `fetch` that is used. */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    credentials: "same-origin" | "omit";
    signal: AbortSignal;
    body?: FileContent;
  },
) => Promise<FetchResponse>;

/** The content of a file to upload. */
export type FileContent = Blob | Uint8Array<ArrayBuffer> | string;

/** A file that was uploaded. */
export interface UploadedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Its media type, such as `image/png`. */
  readonly type: string;
}

/** The part of a `Response` that is used. */
export interface FetchResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
  /** Absent where a runtime has no streams. */
  readonly body?: { getReader(): BodyReader } | null;
}

/** The part of the reader of a body that is used. */
export interface BodyReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<unknown>;
}

/** Part of a session's log. */
export interface LogPart {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The offset of the first byte. */
  readonly from: number;
}
