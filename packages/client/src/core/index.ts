/**
 * The machines and words of Bowline, without IO, clock or DOM. In the order that data walks: ids and bounds, messages, frames,
 * the link, and what the end of a connection means.
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
