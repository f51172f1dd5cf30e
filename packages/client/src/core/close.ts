/** Why a connection ended, and what that means for the next one: the close codes and the classifier. */
import { LONGEST_PATIENCE } from "./config.js";

/** The session exited, or the client asked. */
export const NORMAL = 1000;
/** No close frame came: the network, or a crash. */
export const ABNORMAL = 1006;
/** Malformed request, hello or name. */
export const MALFORMED = 4400;
/** No hello in time, or silence. */
export const SILENT = 4408;
/** The same client attached again on a newer connection. */
export const SUPERSEDED = 4409;

/** How a connection, or the attempt to make one, ended. */
export type Closed =
  /** A close code. `done`: `exit` had come, or the client itself asked for the close, which makes 1000 an end. */
  | { readonly kind: "code"; readonly code: number; readonly reason: string; readonly done: boolean }
  /** An HTTP status. `ours`: it carried `Bowline-Code`, so it is not some proxy's. `retryAfter` is in milliseconds. */
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly ours: boolean;
      readonly retryAfter?: number | undefined;
    }
  /** The transport failed without either. */
  | { readonly kind: "failed" };

/** Which permanent failure. */
export type Permanent = "protocol" | "not_allowed" | "unknown" | "gone" | "version" | "other";

/** What the end of a connection means for the next one. */
export type Class =
  /** Over, and well. */
  | { readonly class: "ended" }
  /** A resend would fail again. */
  | { readonly class: "permanent"; readonly kind: Permanent }
  /** Permanent until a new login. */
  | { readonly class: "needs_login" }
  /** A newer connection of the same client took over; this one ends quietly. */
  | { readonly class: "superseded" }
  /** Fetch another ticket, then retry. */
  | { readonly class: "fetch_ticket" }
  /** Retry, `notBefore` milliseconds from now at the earliest; at most {@link LONGEST_PATIENCE}. */
  | { readonly class: "transient"; readonly notBefore?: number | undefined };

/** Sorts the end of a connection. Pure; the retry policy is the caller's. */
export function classify(closed: Closed): Class {
  switch (closed.kind) {
    case "failed":
      return { class: "transient" };
    case "refused":
      if (closed.ours && closed.status >= 400 && closed.status <= 499)
        return ofStatus(closed.status, closed.retryAfter);
      return transient(closed.retryAfter);
    case "code":
      return ofCode(closed.code, closed.reason, closed.done);
  }
}

function ofCode(code: number, reason: string, done: boolean): Class {
  if (code === NORMAL && done) return { class: "ended" };
  if (code === 1002 || code === 1003 || (code >= 1007 && code <= 1009)) return { class: "permanent", kind: "protocol" };
  if (code >= 4400 && code <= 4499) return ofStatus(code - 4000, retryAfter(reason));
  return { class: "transient" };
}

function ofStatus(status: number, notBefore: number | undefined): Class {
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

/** Whoever answers may ask for patience, but not for any amount of it. */
function transient(notBefore: number | undefined): Class {
  return { class: "transient", notBefore: notBefore === undefined ? undefined : Math.min(notBefore, LONGEST_PATIENCE) };
}

/** `retry_after=SECONDS`, anywhere in a close reason, in milliseconds. */
function retryAfter(reason: string): number | undefined {
  const digits = /retry_after=(\d*)/.exec(reason)?.[1];
  // A u32 of seconds; more is no number that anybody meant.
  return digits && Number(digits) <= 0xffff_ffff ? Number(digits) * 1000 : undefined;
}
