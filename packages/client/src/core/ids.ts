/** The formats of ids and names, and the bounds of terminal sizes. */
import type { ClientId, Size } from "./wire.js";

const CLIENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const SESSION_ID = /^[a-z0-9]{12}$/;
const SESSION_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const EPOCH = /^[0-9a-f]{8}$/;

/** A lower-case UUID. */
export const isClientId = (text: string): boolean => CLIENT_ID.test(text);
/** 12 characters of a-z and 0-9. */
export const isSessionId = (text: string): boolean => SESSION_ID.test(text);
/** 1 to 64 characters of A-Z a-z 0-9 . _ -, the first a letter or digit. */
export const isSessionName = (text: string): boolean => SESSION_NAME.test(text);
/** 8 lower-case hex digits. */
export const isEpoch = (text: string): boolean => EPOCH.test(text);

/** Whether a terminal can have this size: 2 to 1000 columns and 1 to 500 rows. */
export function isSize(size: Size): boolean {
  const within = (n: number, low: number, high: number) => Number.isInteger(n) && n >= low && n <= high;
  return within(size.cols, 2, 1000) && within(size.rows, 1, 500);
}

/** The nearest size that a terminal can have. */
export function clampSize(size: Size): Size {
  const clamp = (n: number, low: number, high: number) => Math.min(Math.max(Math.floor(n) || low, low), high);
  return { cols: clamp(size.cols, 2, 1000), rows: clamp(size.rows, 1, 500) };
}

/** A version 4 UUID from 16 random bytes. (`crypto.randomUUID` does not exist on pages without TLS.) */
export function clientIdFrom(random: Uint8Array): ClientId {
  const hex = Array.from(random.subarray(0, 16), (byte, i) => {
    const fixed = i === 6 ? (byte & 0x0f) | 0x40 : i === 8 ? (byte & 0x3f) | 0x80 : byte;
    return fixed.toString(16).padStart(2, "0");
  }).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** A new client id, for one page load or program run. Never store it, or a duplicated tab would be the same client. */
export function newClientId(): ClientId {
  return clientIdFrom(crypto.getRandomValues(new Uint8Array(16)));
}
