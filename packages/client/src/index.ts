/**
 * `@bowline/client`: attach to Bowline sessions.
 *
 * - {@link Api}: sessions, logins and tokens over HTTP;
 * - {@link TerminalConnection}: a terminal attached to one session, which reconnects and resumes;
 * - {@link EventsConnection}: the list of all sessions (the board), kept up to date.
 *
 * The environment for a page is in `@bowline/client/browser`; the underlying state machines are in
 * `@bowline/client/core`.
 */
export { Api } from "./api/api.js";
export { ApiError } from "./api/error.js";
export type * from "./api/bodies.js";
export type * from "./api/types.js";
export type * from "./connection/environment.js";
export { EventsConnection, type EventsCallbacks, type EventsOptions } from "./connection/events.js";
export { plainEnvironment, realTimers } from "./connection/plain.js";
export { standardSockets, wsSockets } from "./connection/sockets.js";
export type * from "./connection/state.js";
export { TerminalConnection } from "./connection/terminal.js";
export type { CommandOutcome, SnapshotStart, TerminalCallbacks, TerminalOptions } from "./connection/terminal.js";
export { type Backoff, BROWSER, NATIVE } from "./core/backoff.js";
export type { ConnectionEnd, PermanentFailure } from "./core/close.js";
export { clampSize, isSessionName, newClientId } from "./core/ids.js";
export type { UnreadableSession } from "./core/message.js";
export type { SubmitError } from "./core/link/client.js";
export type { Unsent } from "./core/link/outbox.js";
export type * from "./core/wire.js";
