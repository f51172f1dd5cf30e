/**
 * `@bowline/client/core`: the protocol as state machines, without IO, clock or DOM. The TypeScript twin of `crates/proto`.
 */
export * from "./agent/conversation.js";
export { type AgentRecord, readEvent, readRecord, type UnreadRecord } from "./agent/event.js";
export { EMPTY_CONVERSATION, fold } from "./agent/fold.js";
export { addUsed } from "./agent/usage.js";
export * from "./backoff.js";
export * from "./clock.js";
export * from "./close.js";
export * from "./config.js";
export { Position } from "./follow/position.js";
export type { WatchEvent } from "./follow/watches.js";
export * from "./frame.js";
export * from "./ids.js";
export * from "./link/client.js";
export type { ClientEvent, ClientState, Notice } from "./link/event.js";
export * from "./link/feed.js";
export type { ClientConfig } from "./link/hello.js";
export type { Unsent } from "./link/outbox.js";
export type * from "./link/protocol.js";
export * from "./link/reconnect.js";
export * from "./message.js";
export * from "./post/index.js";
export type * from "./wire.js";
