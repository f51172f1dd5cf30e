/** The error of every failed API request. */
import type { ConnectionEnd } from "../core/close.js";
import type { Code } from "../core/wire.js";

/** A request that failed: the server refused it (an RFC 9457 problem), or no response came (`status` 0). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status; 0 when no response came. */
  readonly status: number;
  /**
   * A stable problem code, such as `unknown_session`. This package adds three: `unreachable` when no response came, `http` for a
   * response that is not from Bowline, and `bad_answer` for one that cannot be parsed.
   */
  readonly code: Code;
  /** Whether Bowline itself refused (the response has a `Bowline-Code` header), not a proxy in between. */
  readonly fromGateway: boolean;
  /** The `Retry-After` header, in milliseconds. */
  readonly retryAfter: number | undefined;

  constructor(
    status: number,
    code: Code,
    message: string,
    more: { fromGateway?: boolean; retryAfter?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.status = status;
    this.code = code;
    this.fromGateway = more.fromGateway ?? false;
    this.retryAfter = more.retryAfter;
  }

  /** The same failure, as the end of a connection. */
  get closed(): ConnectionEnd {
    if (this.status === 0) return { kind: "failed" };
    return { kind: "refused", status: this.status, fromGateway: this.fromGateway, retryAfter: this.retryAfter };
  }
}
