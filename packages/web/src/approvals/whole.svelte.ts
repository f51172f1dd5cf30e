/** Whole approvals: lists and the board have shortened texts. */
import type { Approval } from "@bowline/client";
import { SvelteMap } from "svelte/reactivity";
import { errorMessage, gateway } from "../state/gateway.svelte.ts";
import { approvalKey } from "./answer.ts";

/** A whole approval, or how far its request has come. */
export type Whole =
  | { readonly name: "loading" }
  | { readonly name: "loaded"; readonly approval: Approval }
  | { readonly name: "failed"; readonly message: string };

/** How many are kept. When there are more, those that are not open any more are dropped. */
const MAX_WHOLE = 256;

class WholeApprovals {
  readonly #known = new SvelteMap<string, Whole>();
  /** The keys of those that the next request is for. */
  #wanted = new Set<string>();
  #requesting = false;

  /** What is known of an approval, by its key. */
  get(key: string): Whole | undefined {
    return this.#known.get(key);
  }

  /** Requests the whole texts of an approval, by its key. One request is for all that are wanted. */
  load(key: string): void {
    this.#known.delete(key);
    this.#known.set(key, { name: "loading" });
    this.#wanted.add(key);
    if (!this.#requesting) void this.#request();
  }

  async #request(): Promise<void> {
    this.#requesting = true;
    // Cards that appear together have one request.
    await Promise.resolve();
    while (this.#wanted.size > 0) {
      const keys = this.#wanted;
      this.#wanted = new Set();
      const found = await this.#fetch();
      for (const key of keys) {
        const approval = typeof found === "string" ? undefined : found.get(key);
        if (approval) this.#known.set(key, { name: "loaded", approval });
        else
          this.#known.set(key, {
            name: "failed",
            message: typeof found === "string" ? found : "it is not open any more",
          });
      }
      if (typeof found !== "string") this.#dropClosed(found);
    }
    this.#requesting = false;
  }

  #dropClosed(open: ReadonlyMap<string, Approval>): void {
    if (this.#known.size <= MAX_WHOLE) return;
    for (const [key, { name }] of this.#known) if (name === "loaded" && !open.has(key)) this.#known.delete(key);
  }

  /** All open approvals by their keys, or why they could not be fetched. */
  async #fetch(): Promise<Map<string, Approval> | string> {
    try {
      const list = await gateway.api.approvals();
      return new Map(list.map(({ session, approval }) => [approvalKey(session, approval.id), approval]));
    } catch (error) {
      return errorMessage(error);
    }
  }
}

export const wholeApprovals = new WholeApprovals();
