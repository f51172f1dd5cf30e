/**
 * `@bowline/client`: attach to Bowline sessions.
 *
 * - {@link Api}: sessions, logins and tokens over HTTP;
 * - {@link TerminalConnection}: a terminal that stays attached;
 * - {@link EventsConnection}: the board of sessions.
 *
 * Pages take their environment from `@bowline/client/browser`; the machines themselves are in `@bowline/client/core`.
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
export type { Closed, Permanent } from "./core/close.js";
export { clampSize, isSessionName, newClientId } from "./core/ids.js";
export type { UnreadableSession } from "./core/message.js";
export type { NotTaken } from "./core/link/client.js";
export type { Unsent } from "./core/link/outbox.js";
export type * from "./core/wire.js";
