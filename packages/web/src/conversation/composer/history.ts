/** Recalls earlier prompts of a conversation with the arrow keys, as shells do. */
import type { Item, PromptItem } from "../transcript.ts";

/** Prompts that can be recalled. */
const MAX_PROMPTS = 200;

/** The texts of the prompts, the newest first, without repeats. */
export function earlierPrompts(items: readonly Item[], waiting: readonly PromptItem[]): string[] {
  const texts = new Set<string>();
  for (const item of [...items, ...waiting].reverse()) {
    if (item.kind !== "prompt" || item.text.trim() === "") continue;
    texts.add(item.text);
    if (texts.size >= MAX_PROMPTS) break;
  }
  return [...texts];
}

export class PromptHistory {
  /** The earlier prompts, as of the first press of the arrow key; empty while the user is not going through them. */
  #prompts: readonly string[] = [];
  /** The prompt that is shown. */
  #at = 0;

  /**
   * The text that replaces `text` when the user goes back; `undefined` if nothing does. Text that the user has written is
   * never replaced.
   */
  older(text: string, caret: number, prompts: () => readonly string[]): string | undefined {
    if (text.slice(0, caret).includes("\n")) return undefined;
    if (this.#isShown(text)) {
      if (this.#at + 1 >= this.#prompts.length) return undefined;
      this.#at += 1;
    } else {
      this.reset();
      if (text !== "") return undefined;
      this.#prompts = prompts();
    }
    return this.#prompts[this.#at];
  }

  /** The text that replaces `text` when the user goes forward: after the newest prompt, the empty draft. */
  newer(text: string, caret: number): string | undefined {
    if (!this.#isShown(text) || text.slice(caret).includes("\n")) return undefined;
    if (this.#at === 0) {
      this.reset();
      return "";
    }
    this.#at -= 1;
    return this.#prompts[this.#at];
  }

  reset(): void {
    this.#prompts = [];
    this.#at = 0;
  }

  /** Whether the text is the prompt that was recalled last, unchanged. */
  #isShown(text: string): boolean {
    return text !== "" && this.#prompts[this.#at] === text;
  }
}
