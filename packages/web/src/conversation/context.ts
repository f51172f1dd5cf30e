/** The conversation that a component is part of. */
import { getContext, setContext } from "svelte";
import type { LiveConversation } from "./live.svelte.ts";

const KEY = Symbol("conversation");

/** Makes a conversation known to the components below the calling one. Call it while that component initializes. */
export function provideConversation(live: LiveConversation): void {
  setContext(KEY, live);
}

/** The conversation around the calling component. Call it while that component initializes. */
export function useConversation(): LiveConversation {
  return getContext<LiveConversation>(KEY);
}
