/** The shapes of the HTTP API. */
import type { Size } from "../core/wire.js";

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

/** A new terminal session. */
export interface NewSession {
  readonly name?: string;
  /** The program and its arguments; the login shell by default. */
  readonly argv?: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly size?: Size;
  /** What to do when the name is taken; `fail` by default. */
  readonly if_exists?: "fail" | "return" | "restart";
  /** Seconds without a viewer after which it ends; never by default. */
  readonly detached_ttl?: number;
}

/** What may change in a session. */
export interface SessionChange {
  readonly name?: string;
  /** Seconds without a viewer after which it ends; 0 for never. */
  readonly detached_ttl?: number;
}

/** What a token may do. */
export type TokenScope = "read" | "write" | "admin";

/** A token or a browser that logged in, as the list shows it. */
export interface TokenInfo {
  readonly id: string;
  readonly kind: "token" | "login";
  /** The token's name, or how the browser described itself. */
  readonly name: string;
  readonly scope: TokenScope;
  readonly created: string;
  readonly expires: string | null;
  /** When it was last used, to within a day. */
  readonly used: string | null;
}

/** Part of a session's log. */
export interface LogPart {
  readonly bytes: Uint8Array;
  /** The place of the first byte. */
  readonly from: number;
}
