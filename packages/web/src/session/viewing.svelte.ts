/** Tracks which session the user is viewing. */
import type { SessionInfo } from "@bowline/client";
import { untrack } from "svelte";
import { gateway } from "../state/gateway.svelte.ts";
import { page } from "../state/page.svelte.ts";
import { pageTitle } from "../state/title.svelte.ts";
import { nameOf } from "./text.ts";

/**
 * Marks the session as viewed and puts its name into the page title, as long as the calling component exists.
 * `mark` goes before the name. Call it while the component initializes.
 */
export function trackViewing(session: () => SessionInfo | undefined, mark: () => string = () => ""): void {
  $effect(() => {
    const shown = session();
    if (!shown) return;
    gateway.viewedId = shown.id;
    if (page.visible) untrack(() => gateway.markViewed(shown));
    return () => (gateway.viewedId = undefined);
  });
  $effect(() => {
    const shown = session();
    pageTitle.text = `${mark()}${shown ? nameOf(shown) : "Session"} · Bowline`;
  });
}
