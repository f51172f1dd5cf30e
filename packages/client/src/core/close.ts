/** How connections end, and what each end means for reconnecting. */
import { MAX_RETRY_AFTER } from "./config.js";

/** The session exited, or the client left. */
export const NORMAL = 1000;
/** No close frame was received: the network failed, or the other end crashed. */
export const ABNORMAL = 1006;
/** A malformed request, hello or name. */
export const MALFORMED = 4400;
/** No hello in time, or no message for too long. */
export const TIMED_OUT = 4408;
/** The same client attached again on a newer connection. */
export const SUPERSEDED = 4409;

/** How a connection, or the attempt to make one, ended. */
export type ConnectionEnd =
  /** Closed with a code. `done` if `exit` was received or the client left: only then does code 1000 mean the end. */
  | { readonly kind: "code"; readonly code: number; readonly reason: string; readonly done: boolean }
  /**
   * The upgrade was refused with an HTTP status. `fromGateway` if the response has a `Bowline-Code` header, so that it is not from a
   * proxy. `retryAfter` is in milliseconds.
   */
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly fromGateway: boolean;
      readonly retryAfter?: number | undefined;
    }
  /** The transport failed without a code or status. */
  | { readonly kind: "failed" };

/** Why connecting can never succeed. `unknown`: there is no such session. `gone`: it was forgotten. */
export type PermanentFailure = "protocol" | "not_allowed" | "unknown" | "gone" | "version" | "other";

/** What the end of a connection means for reconnecting. */
export type CloseClass =
  /** The session exited, or the client left. */
  | { readonly class: "ended" }
  /** Another attempt would fail, too. */
  | { readonly class: "permanent"; readonly kind: PermanentFailure }
  /** Every attempt fails until the user logs in. */
  | { readonly class: "needs_login" }
  /** A newer connection of the same client took over. */
  | { readonly class: "superseded" }
  /** Fetch a new ticket, then retry. */
  | { readonly class: "fetch_ticket" }
  /** Retry, but not before `notBefore` milliseconds from now; that is at most {@link MAX_RETRY_AFTER}. */
  | { readonly class: "transient"; readonly notBefore?: number | undefined };

/** Says what the end of a connection means. When to retry is up to the caller. */
export function classify(closed: ConnectionEnd): CloseClass {
  switch (closed.kind) {
    case "failed":
      return { class: "transient" };
    case "refused":
      if (closed.fromGateway && closed.status >= 400 && closed.status <= 499)
        return classifyStatus(closed.status, closed.retryAfter);
      return transient(closed.retryAfter);
    case "code":
      return classifyCode(closed.code, closed.reason, closed.done);
  }
}

function classifyCode(code: number, reason: string, done: boolean): CloseClass {
  if (code === NORMAL && done) return { class: "ended" };
  if (code === 1002 || code === 1003 || (code >= 1007 && code <= 1009)) return { class: "permanent", kind: "protocol" };
  if (code >= 4400 && code <= 4499) return classifyStatus(code - 4000, retryAfter(reason));
  return { class: "transient" };
}

function classifyStatus(status: number, notBefore: number | undefined): CloseClass {
  switch (status) {
    case 400:
      return { class: "permanent", kind: "protocol" };
    case 401:
      return { class: "needs_login" };
    case 403:
      return { class: "permanent", kind: "not_allowed" };
    case 404:
      return { class: "permanent", kind: "unknown" };
    case 408:
      return { class: "transient" };
    case 409:
      return { class: "superseded" };
    case 410:
      return { class: "permanent", kind: "gone" };
    case 425:
      return { class: "fetch_ticket" };
    case 426:
      return { class: "permanent", kind: "version" };
    case 429:
      return transient(notBefore);
    default:
      return { class: "permanent", kind: "other" };
  }
}

function transient(notBefore: number | undefined): CloseClass {
  return { class: "transient", notBefore: notBefore === undefined ? undefined : Math.min(notBefore, MAX_RETRY_AFTER) };
}

/** The value of `retry_after=SECONDS`, anywhere in a close reason, in milliseconds. */
function retryAfter(reason: string): number | undefined {
  const digits = /retry_after=(\d*)/.exec(reason)?.[1];
  // Seconds are a u32; a larger number is ignored.
  return digits && Number(digits) <= 0xffff_ffff ? Number(digits) * 1000 : undefined;
}
