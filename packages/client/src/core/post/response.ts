/** What the response to a command means for its entry. */
import { MAX_RETRY_AFTER } from "../config.js";
import { attempt, oneOfOrUnknown } from "../shape.js";
import type { Delivery, Failure } from "./entry.js";
import { MAX_MESSAGE } from "./limits.js";

/** The response to a request that sent a command. */
export type PostResponse =
  /** No response came, or only a part of one: `why`, for people. The command may have been received. */
  | { readonly kind: "missing"; readonly why: string }
  | {
      readonly kind: "http";
      readonly status: number;
      /** The header `Bowline-Code`: the response comes from a gateway and not from a server in between. */
      readonly code?: string | undefined;
      /** From the header `Retry-After`, in milliseconds. */
      readonly retryAfter?: number | undefined;
      readonly body: string;
    };

/** What a response means. */
export type ResponseClass =
  | { readonly class: "delivered"; readonly delivery: Delivery }
  /** Another try fails until the user logs in again. */
  | { readonly class: "needs_login" }
  /**
   * Send again because of `message`, but not before `notBefore` milliseconds from now. `binding`: the gateway itself requested the
   * wait, so it also holds on a wake.
   */
  | { readonly class: "retry"; readonly notBefore?: number; readonly binding: boolean; readonly message: string }
  | { readonly class: "failed"; readonly failure: Failure };

/** The used fields of a body. It may come from anywhere, so that each may be missing or of another type. */
type Body = Readonly<Record<"id" | "seq" | "run" | "outcome" | "by" | "detail" | "title", unknown>>;

const outcomeOf = attempt(oneOfOrUnknown("allowed", "denied", "withdrawn", "aborted", "lost", "expired"));

/**
 * Classifies the response to the command `id`.
 *
 * Only a gateway can settle an entry: by a body that has the command's id, or by a refusal with `Bowline-Code`. All else may come
 * from a proxy, or from a login page of the network.
 */
export function classifyResponse(id: string, response: PostResponse): ResponseClass {
  if (response.kind === "missing") return retry(undefined, false, cut(response.why));
  const { status, code, retryAfter } = response;
  const body = parse(response.body);
  if (status >= 200 && status <= 299) {
    const delivery = acceptedBy(id, body);
    return delivery ? { class: "delivered", delivery } : retry(undefined, false, "the response is not from Bowline");
  }
  const message = messageOf(status, body);
  const wait = status === 429 || status === 503 ? retryAfter : undefined;
  if (code === undefined) return retry(wait, false, message);
  if (status === 401) return { class: "needs_login" };
  if (status === 409 && code === "already_answered") {
    const outcome = outcomeOf(body.outcome);
    const by = typeof body.by === "string" ? cut(body.by) : undefined;
    const answered = { ...(outcome === undefined ? {} : { outcome }), ...(by === undefined ? {} : { by }) };
    return { class: "delivered", delivery: { how: "already_answered", ...answered } };
  }
  if (status === 409 && code === "not_running") return { class: "delivered", delivery: { how: "not_running" } };
  if (status === 410) return { class: "failed", failure: { reason: "session_gone", message } };
  if (status === 507) return { class: "failed", failure: { reason: "no_space", message } };
  if (wait !== undefined) return retry(wait, true, message);
  const isRefusal = status >= 400 && status <= 499 && ![408, 425, 429].includes(status);
  if (isRefusal) return { class: "failed", failure: { reason: "refused", code: cut(code), message } };
  return retry(undefined, false, message);
}

/** The settlement that a successful response proves, if it is about this command. */
function acceptedBy(id: string, { id: other, seq, run }: Body): Delivery | undefined {
  if (other !== id || !Number.isSafeInteger(seq) || (seq as number) < 0) return undefined;
  return { how: "accepted", seq: seq as number, ...(typeof run === "string" ? { run: cut(run) } : {}) };
}

function retry(wait: number | undefined, binding: boolean, message: string): ResponseClass {
  if (wait === undefined || !(wait >= 0)) return { class: "retry", binding: false, message };
  return { class: "retry", notBefore: Math.min(wait, MAX_RETRY_AFTER), binding, message };
}

/** What the problem document says, or the status if there is none. */
function messageOf(status: number, { detail, title }: Body): string {
  const text = [detail, title].find((field) => typeof field === "string" && field !== "");
  return text === undefined ? `HTTP status ${status}` : cut(text as string);
}

/** The beginning of a text from outside. */
function cut(text: string): string {
  // A character has at most two units.
  return Array.from(text.slice(0, 2 * MAX_MESSAGE))
    .slice(0, MAX_MESSAGE)
    .join("");
}

function parse(text: string): Body {
  try {
    return Object(JSON.parse(text)) as Body;
  } catch {
    return {} as Body;
  }
}
