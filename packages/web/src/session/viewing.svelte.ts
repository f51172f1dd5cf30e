/** The session that the user looks at. */
import type { SessionInfo } from "@bowline/client";
import { untrack } from "svelte";
import { gateway } from "../state/gateway.svelte.ts";
import { page } from "../state/page.svelte.ts";
import { nameOf } from "./words.ts";

/**
 * Marks the session as looked at and names it in the page's title, while the calling component shows it. `rang` puts a dot before
 * the name. Call it while the component initializes.
 */
export function viewing(session: () => SessionInfo | undefined, rang: () => boolean = () => false): void {
  $effect(() => {
    const shown = session();
    if (!shown) return;
    gateway.viewed = shown.id;
    if (page.visible) untrack(() => gateway.lookAt(shown));
    return () => (gateway.viewed = undefined);
  });
  $effect(() => {
    const shown = session();
    document.title = `${rang() ? "● " : ""}${shown ? nameOf(shown) : "Session"} · Bowline`;
  });
}
