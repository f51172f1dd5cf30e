/**
 * `@bowline/client`: attach to Bowline sessions.
 *
 * - {@link Api}: sessions, logins and tokens over HTTP;
 * - {@link TerminalConnection}: a terminal attached to one session, which reconnects and resumes;
 * - {@link EventsConnection}: the list of all sessions (the board), kept up to date;
 * - {@link AgentConnection}: a conversation with an agent, kept up to date by an `EventsConnection`;
 * - {@link Post}: commands for agent sessions, sent until each is settled.
 *
 * The environment for a page is in `@bowline/client/browser`; the underlying state machines are in
 * `@bowline/client/core`.
 */
export { Api } from "./api/api.js";
export { ApiError } from "./api/error.js";
export type * from "./api/bodies.js";
export type * from "./api/types.js";
export { AgentConnection, type AgentCallbacks, type AgentOptions } from "./connection/agent.js";
export type * from "./connection/environment.js";
export { EventsConnection, type EventsCallbacks, type EventsOptions } from "./connection/events.js";
export type { Watch, WatchAnswer, WatchCallbacks } from "./connection/events.js";
export { Post } from "./connection/post.js";
export type { PostCallbacks, PostOptions, PostStorage, SendResult } from "./connection/post.js";
export { plainEnvironment, realTimers } from "./connection/plain.js";
export { standardSockets, wsSockets } from "./connection/sockets.js";
export type * from "./connection/state.js";
export { TerminalConnection } from "./connection/terminal.js";
export type { CommandOutcome, SnapshotStart, TerminalCallbacks, TerminalOptions } from "./connection/terminal.js";
export { type ConversationPage, isNewer } from "./core/agent/conversation.js";
export { type AgentRecord, readRecord, type UnreadRecord } from "./core/agent/event.js";
export { type Backoff, BROWSER, NATIVE } from "./core/backoff.js";
export type { ConnectionEnd, PermanentFailure } from "./core/close.js";
export { clampSize, isSessionName, newClientId } from "./core/ids.js";
export type * from "./core/post/entry.js";
export type { SendError } from "./core/post/item.js";
export type { StoredEntry } from "./core/post/queue.js";
export type { PostResponse } from "./core/post/response.js";
export type { UnreadableSession } from "./core/message.js";
export type { SubmitError } from "./core/link/client.js";
export type { Unsent } from "./core/link/outbox.js";
export type * from "./core/wire.js";
