/** The cards of the inbox: what the board lists as open, and for a while what it no longer does. */
import { untrack } from "svelte";
import { gateway } from "../state/gateway.svelte.ts";
import { outcomeText, progressOf } from "./answer.ts";
import { answerTo } from "./answers.svelte.ts";
import { findResolution, type InboxItem, nextItems, openList, withoutOld, withText } from "./list.ts";

/** How often closed cards are looked at, in milliseconds. */
const TIDY_MS = 500;

export class InboxList {
  items: readonly InboxItem[] = $state.raw([]);
  /** Whether the user may be about to press something: closed cards stay longer then. */
  busy = false;

  /** Follows the board as long as the calling component exists. Call it while that component initializes. */
  constructor() {
    $effect(() => {
      const open = openList(gateway.sessions.values());
      untrack(() => this.#handleBoard(open));
    });
    const hasClosed = $derived(this.items.some(({ closed }) => closed));
    $effect(() => {
      if (!hasClosed) return;
      const timer = setInterval(() => (this.items = withoutOld(this.items, Date.now(), this.busy)), TIDY_MS);
      return () => clearInterval(timer);
    });
  }

  #handleBoard(open: ReturnType<typeof openList>): void {
    const before = this.items;
    this.items = nextItems(before, open, Date.now());
    for (const item of this.items) {
      if (item.closed && !before.some(({ key, closed }) => key === item.key && closed)) void this.#explain(item);
    }
  }

  /** Finds out how an approval was closed: by this page, or else from the end of the history. */
  async #explain({ key, session, approval }: InboxItem): Promise<void> {
    const answer = answerTo(key);
    if (answer && answer.entry.state.name !== "failed") {
      const progress = progressOf(answer, approval);
      if (progress.name === "closed") return this.#say(key, progress.text);
    }
    try {
      const { events } = await gateway.api.history(session);
      const found = findResolution(events, approval.id);
      if (found) this.#say(key, outcomeText(found.outcome, found.by, approval.kind));
    } catch {
      // The session was forgotten, or the gateway cannot be reached: that it was answered is still true.
    }
  }

  #say(key: string, text: string): void {
    this.items = withText(this.items, key, text, Date.now());
  }
}
