/** The completion that is offered for the word at the caret. */
import type { FileList, SlashCommand } from "@bowline/client";
import {
  commandSuggestions,
  fileSuggestions,
  type Insertion,
  insertionOf,
  isComplete,
  type Suggestion,
  type Trigger,
  triggerAt,
} from "./completion.ts";
import { FileLookup, NO_FILES } from "./files.ts";

export interface CompletionOptions {
  readonly commands: () => readonly SlashCommand[];
  readonly files: (query: string, signal: AbortSignal) => Promise<FileList>;
  /** An error in words. */
  readonly explain: (error: unknown) => string;
}

export class Completion {
  readonly #options: CompletionOptions;
  readonly #lookup: FileLookup;
  #trigger: Trigger | undefined = $state.raw();
  #found = $state.raw(NO_FILES);
  #selected = $state(0);
  /** Where the word begins whose completion the user has closed. */
  #closedAt: number | undefined;
  readonly suggestions: readonly Suggestion[] = $derived.by(() => {
    if (!this.#trigger) return [];
    if (this.#trigger.kind === "file") return fileSuggestions(this.#found.files);
    return commandSuggestions(this.#options.commands(), this.#trigger.query);
  });

  constructor(options: CompletionOptions) {
    this.#options = options;
    this.#lookup = new FileLookup({
      list: options.files,
      explain: options.explain,
      show: (found) => {
        if (found.files !== this.#found.files) this.#selected = 0;
        this.#found = found;
      },
    });
  }

  /** Whether the list is shown. */
  get isOpen(): boolean {
    return this.#trigger?.kind === "file" || this.suggestions.length > 0;
  }

  /** The place of the suggestion that Enter chooses. */
  get selected(): number {
    return Math.min(this.#selected, this.suggestions.length - 1);
  }

  /** What is shown below the suggestions, or in their place; empty if nothing. */
  get note(): string {
    if (this.#trigger?.kind !== "file") return "";
    const { problem, loading, truncated, files } = this.#found;
    if (problem) return problem;
    if (files.length === 0) return loading ? "Searching files…" : "No file matches";
    return truncated ? "There are more. Type more of the name." : "";
  }

  /** Whether the first answer is awaited, so that Enter has nothing to choose yet. */
  get isWaiting(): boolean {
    return this.#trigger?.kind === "file" && this.#found.loading && this.suggestions.length === 0;
  }

  /** To be called when the text or the caret has changed; without a caret when the text field has lost the focus. */
  update(text: string, caret: number | undefined): void {
    const trigger = caret === undefined ? undefined : triggerAt(text, caret);
    if (trigger?.start !== this.#closedAt) this.#closedAt = undefined;
    if (!trigger || this.#closedAt !== undefined) return this.#hide();
    if (trigger.query !== this.#trigger?.query || trigger.kind !== this.#trigger.kind) this.#selected = 0;
    this.#trigger = trigger;
    if (trigger.kind === "file") this.#lookup.search(trigger.query);
    else this.#lookup.stop();
  }

  /** Selects the next or the previous suggestion. */
  move(by: 1 | -1): void {
    const count = this.suggestions.length;
    if (count > 0) this.#selected = (this.selected + by + count) % count;
  }

  /** What choosing a suggestion changes in the text: the selected one, unless another is given. */
  choose(text: string, at = this.selected): Insertion | undefined {
    const suggestion = this.suggestions[at];
    return this.#trigger && suggestion && insertionOf(text, this.#trigger, suggestion);
  }

  /** Whether the word is what Enter would choose already. */
  isComplete(text: string): boolean {
    const suggestion = this.suggestions[this.selected];
    return this.#trigger !== undefined && suggestion !== undefined && isComplete(text, this.#trigger, suggestion);
  }

  /** Offers nothing more for this word. */
  close(): void {
    this.#closedAt = this.#trigger?.start;
    this.#hide();
  }

  #hide(): void {
    this.#trigger = undefined;
    this.#lookup.stop();
  }
}
