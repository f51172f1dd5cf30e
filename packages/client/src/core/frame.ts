/**
 * Frames on the unix socket, and the binary payloads that are the same on every transport.
 *
 * A frame is a u32 big-endian length of the payload, one kind byte (0 text, 1 binary), and the payload.
 * A binary payload is a type byte, then (for output and input) a u64 big-endian offset, then bytes.
 *
 * Offsets are numbers here. One above 2^53 - 1 is a {@link FrameError} with code `offset`; at a gigabyte a second, a session
 * takes more than a hundred days to get there.
 */

/** The longest payload of a frame, in bytes; a longer one is a protocol error. */
export const MAX_PAYLOAD = 1 << 20;
/** Bytes before the payload: length and kind. */
export const HEADER = 5;

/** One message of a transport: text or binary. */
export type Frame = string | Uint8Array;

export type Binary =
  /** 0x01, to the client: output that starts at `offset`. */
  | { readonly kind: "output"; readonly offset: number; readonly bytes: Uint8Array }
  /** 0x02, to the client: part of a snapshot. */
  | { readonly kind: "snapshot"; readonly bytes: Uint8Array }
  /** 0x03, to the server: input that starts at `offset` of this client's input stream. */
  | { readonly kind: "input"; readonly offset: number; readonly bytes: Uint8Array };

/** Bytes that are not a valid frame or payload. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly code: "too_long" | "kind" | "not_utf8" | "binary" | "offset";

  constructor(code: FrameError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** Decodes the first frame in `buffer`. `used` is its length there. Returns `undefined` if the frame is incomplete. */
export function decodeFrame(buffer: Uint8Array): { frame: Frame; used: number } | undefined {
  if (buffer.length < HEADER) return undefined;
  const length = viewOf(buffer).getUint32(0);
  const kind = buffer[4];
  if (length > MAX_PAYLOAD) {
    throw new FrameError("too_long", `frame of ${length} bytes exceeds the limit of ${MAX_PAYLOAD}`);
  }
  if (kind !== 0 && kind !== 1) throw new FrameError("kind", `unknown frame kind ${kind}`);
  const used = HEADER + length;
  if (buffer.length < used) return undefined;
  const payload = buffer.subarray(HEADER, used);
  return { frame: kind === 0 ? decodeText(payload) : payload, used };
}

export function encodeFrame(frame: Frame): Uint8Array {
  const payload = typeof frame === "string" ? new TextEncoder().encode(frame) : frame;
  const out = new Uint8Array(HEADER + payload.length);
  viewOf(out).setUint32(0, payload.length);
  out[4] = typeof frame === "string" ? 0 : 1;
  out.set(payload, HEADER);
  return out;
}

/** Decodes a binary payload. The resulting bytes are a view into `payload`. */
export function decodeBinary(payload: Uint8Array): Binary {
  const kind = payload[0];
  if (kind === 2) return { kind: "snapshot", bytes: payload.subarray(1) };
  if ((kind !== 1 && kind !== 3) || payload.length < 9) throw new FrameError("binary", "malformed binary payload");
  const offset = viewOf(payload).getBigUint64(1);
  if (offset > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new FrameError("offset", `offset ${offset} is above 2^53 - 1, the largest that this client supports`);
  }
  return { kind: kind === 1 ? "output" : "input", offset: Number(offset), bytes: payload.subarray(9) };
}

export function encodeBinary(binary: Binary): Uint8Array {
  if (binary.kind === "snapshot") {
    const out = new Uint8Array(1 + binary.bytes.length);
    out[0] = 2;
    out.set(binary.bytes, 1);
    return out;
  }
  if (!Number.isSafeInteger(binary.offset) || binary.offset < 0) {
    throw new FrameError("offset", `invalid offset ${binary.offset}`);
  }
  const out = new Uint8Array(9 + binary.bytes.length);
  out[0] = binary.kind === "output" ? 1 : 3;
  viewOf(out).setBigUint64(1, BigInt(binary.offset));
  out.set(binary.bytes, 9);
  return out;
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FrameError("not_utf8", "text frame is not UTF-8");
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
