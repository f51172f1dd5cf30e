/** A refusal of the server, or a request that did not reach it. */
import type { Closed } from "../core/close.js";
import type { Code } from "../core/wire.js";

/** Why a request failed: a problem of the server's (RFC 9457), or `status` 0 when no answer came. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** A stable problem code, such as `unknown_session`; `http` for an answer that is not Bowline's, `unreachable` for none. */
  readonly code: Code;
  /** It carried `Bowline-Code`, or a problem with a code: the refusal is ours, not some proxy's. */
  readonly ours: boolean;
  /** `Retry-After`, in milliseconds. */
  readonly retryAfter: number | undefined;

  constructor(
    status: number,
    code: Code,
    message: string,
    more: { ours?: boolean; retryAfter?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.status = status;
    this.code = code;
    this.ours = more.ours ?? false;
    this.retryAfter = more.retryAfter;
  }

  /** What it would mean for a connection. */
  get closed(): Closed {
    if (this.status === 0) return { kind: "failed" };
    return { kind: "refused", status: this.status, ours: this.ours, retryAfter: this.retryAfter };
  }
}
