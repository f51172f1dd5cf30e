/**
 * `@bowline/client/core`: the protocol as state machines, without IO, clock or DOM. The TypeScript twin of `crates/proto`.
 */
export * from "./backoff.js";
export * from "./clock.js";
export * from "./close.js";
export * from "./config.js";
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
export type * from "./wire.js";
