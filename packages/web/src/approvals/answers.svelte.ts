/** The answers to approvals that this page has given. */
import type { PostEntry } from "@bowline/client";
import { untrack } from "svelte";
import { gateway } from "../state/gateway.svelte.ts";
import { outbox } from "../state/outbox.svelte.ts";
import { type Answer, answeredKey, type Answers, nextAnswers } from "./answer.ts";

let answers: Answers = $state.raw(new Map());

/** The answer of this page to an approval, by its key. */
export function answerTo(key: string): Answer | undefined {
  return answers.get(key);
}

/** Whether this page has answered an approval, and the answer has not failed. */
export function isAnswered(key: string): boolean {
  const answer = answers.get(key);
  return answer !== undefined && answer.entry.state.name !== "failed";
}

/**
 * Follows the queue as long as the calling component exists: the app's. Call it while that component initializes. The queue also
 * sends what an earlier page has left, so it is started here, once the gateway has accepted the login.
 */
export function trackAnswers(): void {
  const started = $derived(gateway.boardLoaded && gateway.login === "in");
  // An effect of its own: a reaction that creates the queue does not see its changes.
  $effect(() => {
    if (started) outbox();
  });
  $effect(() => {
    if (!started) return;
    const { entries } = outbox();
    untrack(() => (answers = nextAnswers(answers, entries)));
  });
  // Approvals that the board no longer lists need no entry.
  $effect(() => {
    if (!started) return;
    const { entries, post } = outbox();
    for (const entry of entries) {
      if (entry.state.name === "delivered" && answeredKey(entry) !== undefined && !isListed(entry))
        post.dismiss(entry.id);
    }
  });
}

function isListed({ session, command }: PostEntry): boolean {
  return gateway.sessions.get(session)?.approvals?.some(({ id }) => id === command?.["approval"]) ?? false;
}
