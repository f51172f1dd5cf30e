/** What the HTTP API is called with, and what it gives, beside the bodies in `bodies.ts`. */

/** How requests and dials are let in. */
export type Auth =
  /** A page: the cookie, and the key that its own origin keeps. */
  | { readonly kind: "browser"; readonly key: string }
  /** A program: a token in the `Authorization` header. */
  | { readonly kind: "bearer"; readonly token: string }
  /**
   * A program whose WebSocket can send no header: a token for requests, and a ticket (fetched before each dial) in the URL of
   * the WebSocket. With a `key` instead, a page whose cookie does not reach the WebSocket.
   */
  | { readonly kind: "ticket"; readonly token?: string; readonly key?: string }
  /** Nobody yet: only `login` works. */
  | { readonly kind: "none" };

/** What the API is made of. */
export interface ApiOptions {
  /** Where Bowline is, with its sub-path if it has one: `https://host/terminals/`. */
  readonly base: string;
  /** How to be let in. */
  readonly auth: Auth;
  /** `fetch`, unless the global one is meant. */
  readonly fetch?: Fetch;
  /** Milliseconds after which a request without an answer has failed; 30 s by default. The answer may take ten times as long. */
  readonly timeout?: number;
}

/** As much of `fetch` as is used. */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    credentials: "same-origin" | "omit";
    signal: AbortSignal;
    body?: string;
  },
) => Promise<FetchResponse>;

/** As much of a response as is used. */
export interface FetchResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** Part of a session's log. */
export interface LogPart {
  readonly bytes: Uint8Array;
  /** The place of the first byte. */
  readonly from: number;
}
