/** Which parts of a conversation the user has opened or folded. */
import { SvelteMap } from "svelte/reactivity";

export class Folds {
  /** By the key of the item. */
  readonly #open = new SvelteMap<string, boolean>();

  /** Whether an item is open; `otherwise` if the user has not decided. */
  isOpen(key: string, otherwise: boolean): boolean {
    return this.#open.get(key) ?? otherwise;
  }

  set(key: string, open: boolean): void {
    this.#open.set(key, open);
  }
}
