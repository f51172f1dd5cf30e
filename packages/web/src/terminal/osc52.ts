/** OSC 52: lets a program write to the clipboard, up to a limit. Programs can never read it. */

/** The longest text that a program may copy, in bytes. Longer text is refused, and the user is notified. */
export const CLIPBOARD_LIMIT = 256 * 1024;

export type ClipboardRequest =
  | { readonly kind: "write"; readonly text: string }
  | { readonly kind: "too-large"; readonly bytes: number }
  /** A read, a clear, or malformed. */
  | { readonly kind: "ignored" };

/** Parses what follows `52;`: the selections, then base64. */
export function parseOsc52(data: string): ClipboardRequest {
  const at = data.indexOf(";");
  const encoded = at < 0 ? "" : data.slice(at + 1);
  const selections = data.slice(0, Math.max(at, 0));
  if (!/^[cpqs0-7]*$/.test(selections) || !/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return { kind: "ignored" };
  const bytes = Math.floor((encoded.replace(/=+$/, "").length * 3) / 4);
  if (bytes > CLIPBOARD_LIMIT) return { kind: "too-large", bytes };
  try {
    const raw = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
    return { kind: "write", text: new TextDecoder("utf-8", { fatal: true }).decode(raw) };
  } catch {
    return { kind: "ignored" };
  }
}
