/** The configuration of a viewer's link, and the hello message made from it. */
import { VERSION } from "../message.js";
import type { ClientId, Cursor, Hello, Lag, Size, Theme } from "../wire.js";
import type { Unsent } from "./outbox.js";

export interface ClientConfig {
  /** Identifies this page load or program run. */
  readonly client: ClientId;
  /** The client id before a page reload. */
  readonly was?: ClientId | undefined;
  /** Where to resume. */
  readonly cursor?: Cursor | undefined;
  /** The size of the window, if there is one. */
  readonly size?: Size | undefined;
  /** What the session does when this viewer cannot keep up; `skip` by default. */
  readonly lag?: Lag | undefined;
  /** Lines of scrollback in a snapshot of scope `all`; 1000 by default. */
  readonly scrollback?: number | undefined;
  /** Attach read-only. */
  readonly observe?: boolean | undefined;
  /** The colours with which the session answers colour queries. */
  readonly theme?: Theme | undefined;
  /** Bytes that an earlier link to this session reported as unsent, and that the user has not decided about. */
  readonly unsent?: Unsent | undefined;
  /** How many typed bytes are kept; `OUTBOX` by default. */
  readonly outbox?: number | undefined;
  /** How many bytes are rendered between two acknowledgements; `RENDERED_EVERY` by default. */
  readonly renderedEvery?: number | undefined;
  /** For how long input typed while disconnected is still sent automatically; `UNSENT_AFTER` by default. */
  readonly unsentAfter?: number | undefined;
}

const DEFAULT_SCROLLBACK = 1000;

/** The hello of one connection. `conn` counts the connections of this client, from 1. */
export function makeHello(
  config: ClientConfig,
  now: { conn: number; cursor: Cursor | undefined; size: Size | undefined; key: string | undefined },
): Hello {
  const { client, was, theme, lag = "skip", scrollback, observe = false } = config;
  const { conn, cursor, size, key } = now;
  return {
    version: VERSION,
    client,
    conn,
    ...(was === undefined ? {} : { was }),
    cursor: cursor ?? null,
    ...(size === undefined ? {} : { size }),
    lag,
    scrollback: clampLines(scrollback),
    observe,
    ...(theme === undefined ? {} : { theme }),
    ...(key === undefined ? {} : { key }),
  };
}

/** A valid u32, because the server refuses a hello with anything else. */
function clampLines(scrollback: number | undefined): number {
  const lines = Math.trunc(scrollback ?? DEFAULT_SCROLLBACK);
  return Number.isNaN(lines) ? DEFAULT_SCROLLBACK : Math.min(Math.max(lines, 0), 0xffff_ffff);
}
