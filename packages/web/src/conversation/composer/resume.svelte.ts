/** Sends messages to sessions that have ended: restarts the session once a message was refused for that, then sends it again. */
import { SvelteMap, SvelteSet } from "svelte/reactivity";
import { errorMessage } from "../../state/gateway.svelte.ts";
import { outbox } from "../../state/outbox.svelte.ts";

/** The ids of the entries whose session is restarted, or will be as soon as they are refused. */
const pending = new SvelteSet<string>();
/** Why the session could not be restarted, by the id of the entry. */
const problems = new SvelteMap<string, string>();

/** Whether the session of an entry is restarted, or will be as soon as the entry is refused. */
export function isResuming(id: string): boolean {
  return pending.has(id);
}

/** Why the session of an entry could not be restarted; undefined if that was not tried, or is tried again. */
export function resumeProblem(id: string): string | undefined {
  return problems.get(id);
}

/**
 * Restarts the session of an entry as soon as the entry has failed because the session has ended, and sends the entry again. It
 * stays in the queue whatever fails. The session is restarted once: one that ends at once is not restarted for ever.
 */
export async function resume(id: string): Promise<void> {
  if (pending.has(id)) return;
  problems.delete(id);
  pending.add(id);
  try {
    if (await isRefused(id)) await outbox().post.resumeAndSend(id);
  } catch (error) {
    problems.set(id, errorMessage(error));
  } finally {
    pending.delete(id);
  }
}

/** Waits until an entry was delivered, has failed or is gone. Returns whether it failed because the session has ended. */
function isRefused(id: string): Promise<boolean> {
  return new Promise((settle) => {
    const stop = $effect.root(() => {
      $effect(() => {
        const state = outbox().entries.find((entry) => entry.id === id)?.state;
        if (state && state.name !== "delivered" && state.name !== "failed") return;
        settle(state?.name === "failed" && state.reason === "session_gone");
        // An effect does not remove itself while it runs.
        queueMicrotask(() => stop());
      });
    });
  });
}
