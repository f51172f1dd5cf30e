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
export type * from "./api/types.js";
export type * from "./connection/environment.js";
export { EventsConnection } from "./connection/events.js";
export type * from "./connection/events.js";
export type * from "./connection/state.js";
export { TerminalConnection } from "./connection/terminal.js";
export type * from "./connection/terminal.js";
export { BROWSER, NATIVE } from "./core/backoff.js";
export type { Backoff } from "./core/backoff.js";
export type { Closed, Permanent } from "./core/close.js";
export type * from "./core/wire.js";
