/** Who a viewer is, and how it says so. */
import { VERSION } from "../message.js";
import type { ClientId, Cursor, Hello, Lag, Size, Theme } from "../wire.js";
import type { Unsent } from "./outbox.js";

/** Who a viewer is and what it wants. */
export interface ClientConfig {
  /** This run of this client. */
  readonly client: ClientId;
  /** Its id before a page reload. */
  readonly was?: ClientId | undefined;
  /** Where to go on from. */
  readonly cursor?: Cursor | undefined;
  /** The size of its window, if it has one. */
  readonly size?: Size | undefined;
  /** What it wants when it cannot keep up; `skip` by default. */
  readonly lag?: Lag | undefined;
  /** Lines of scrollback in a whole snapshot; 1000 by default. */
  readonly scrollback?: number | undefined;
  /** Look only. */
  readonly observe?: boolean | undefined;
  /** Answers for colour queries. */
  readonly theme?: Theme | undefined;
  /** Typed bytes that an earlier link to this session left undecided. They wait here as if they had been reported. */
  readonly unsent?: Unsent | undefined;
  /** Typed bytes that are kept; `OUTBOX` by default. */
  readonly outbox?: number | undefined;
  /** How much is rendered between two acknowledgements; `RENDERED_EVERY` by default. */
  readonly renderedEvery?: number | undefined;
  /** The longest absence after which kept input is still sent; `UNSENT_AFTER` by default. */
  readonly unsentAfter?: number | undefined;
}

/** Lines of scrollback in a whole snapshot, unless others are wanted. */
const SCROLLBACK = 1000;

/** The hello of one dial: who it is, where it goes on, and its window as it is now. */
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
    scrollback: linesOf(scrollback),
    observe,
    ...(theme === undefined ? {} : { theme }),
    ...(key === undefined ? {} : { key }),
  };
}

/** As the wire has it: a u32. A hello with anything else would be refused for good. */
function linesOf(wanted: number | undefined): number {
  const lines = Math.trunc(wanted ?? SCROLLBACK);
  return Number.isNaN(lines) ? SCROLLBACK : Math.min(Math.max(lines, 0), 0xffff_ffff);
}
