/** Sends commands until each is settled: the TypeScript twin of `crates/proto/src/post`. */
export * from "./entry.js";
export type { SendError } from "./item.js";
export * from "./limits.js";
export * from "./queue.js";
export * from "./response.js";
export { fromStored, toStored } from "./stored.js";
