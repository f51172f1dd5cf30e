/** What the Enter key does in the composer. */
import type { Settings } from "../../state/device.svelte.ts";

/** The fields of a keyboard event that matter here. */
export interface EnterPress {
  readonly key: string;
  readonly keyCode: number;
  readonly isComposing: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
}

/** Whether the key belongs to an input method, which is about to finish a word. */
export function isComposing({ isComposing, keyCode }: Pick<EnterPress, "isComposing" | "keyCode">): boolean {
  // Safari reports the Enter that finishes a word after the composition, with the key code of one.
  return isComposing || keyCode === 229;
}

/** Whether a key press sends the message. With Shift, Enter always starts a new line. */
export function sends(press: EnterPress, sendWith: Settings["sendWith"]): boolean {
  if (press.key !== "Enter" || press.shiftKey || press.altKey || isComposing(press)) return false;
  return sendWith === "enter" || press.ctrlKey || press.metaKey;
}

/** How to send, in words. `mac` is whether the keyboard is that of a Mac. */
export function sendHint(sendWith: Settings["sendWith"], mac: boolean): string {
  return sendWith === "enter" ? "Enter to send, Shift+Enter for a new line" : `${mac ? "⌘" : "Ctrl"}+Enter to send`;
}
