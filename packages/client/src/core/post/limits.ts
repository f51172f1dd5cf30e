/** The limits of sending commands: what each one bounds, and what happens when it is reached. Times are in milliseconds. */
import { type Backoff, BROWSER } from "../backoff.js";

/** Entries of one session in each lane; `send` refuses another. */
export const MAX_SESSION_ENTRIES = 64;
/** Entries of all sessions in each lane; `send` refuses another. */
export const MAX_ENTRIES = 256;
/** Bytes of all commands of a lane, as JSON; `send` refuses a command that does not fit. */
export const MAX_BYTES = 2 << 20;
/** The longest command, as JSON; `send` refuses a longer one, and so would the server. */
export const MAX_COMMAND = 256 << 10;
/** An entry that is not settled this long after it was made fails, and the user decides. */
export const SEND_WITHIN = 600_000;
/** A request without a response for this long is dropped, and the entry is sent again. */
export const RESPONSE_WITHIN = 15_000;
/** When to send again. */
export const RETRY: Backoff = { ...BROWSER, tries: null };
/** The longest message of a failure, in characters; a longer one is cut. */
export const MAX_MESSAGE = 1000;
/** The longest id of a command, in bytes; `send` refuses a longer one. */
export const MAX_COMMAND_ID = 64;
/** The longest id of a session, in bytes; `send` refuses a longer one. */
export const MAX_SESSION = 256;
