/** Says how much needs the user where it is seen without looking at the page: in its title, on the icon of its tab and of the app. */
import { attentionReason } from "../state/attention.ts";
import { gateway } from "../state/gateway.svelte.ts";
import { page } from "../state/page.svelte.ts";
import { pageTitle } from "../state/title.svelte.ts";
import { isAnswered } from "./answers.svelte.ts";
import { openList } from "./list.ts";

const ICON = "./icon.svg";
const ALERT_ICON = "./icon-alert.svg";

/** The number of approvals that wait for an answer, and that this page has not answered. */
export function waitingCount(): number {
  if (gateway.login === "out") return 0;
  return openList(gateway.sessions.values()).filter(({ key }) => !isAnswered(key)).length;
}

/** Keeps title and icons up to date as long as the calling component exists: the app's. Call it while that component initializes. */
export function trackBadges(): void {
  const waiting = $derived(waitingCount());
  // On the page of a session, only what stops an agent is worth a change of its title.
  const counted = $derived(page.route.name === "session" ? waiting : waiting + otherCount());
  $effect(() => {
    document.title = counted > 0 ? `(${counted}) ${pageTitle.text}` : pageTitle.text;
  });
  $effect(() => {
    const icon = document.querySelector('link[rel="icon"]');
    icon?.setAttribute("href", waiting > 0 ? ALERT_ICON : ICON);
  });
  $effect(() => {
    if (!("setAppBadge" in navigator)) return;
    // Refused where the app is not installed; there is no badge then.
    navigator.setAppBadge(waiting).catch(() => {});
  });
}

/** The number of sessions that need attention for another reason. */
function otherCount(): number {
  const reasons = Array.from(gateway.sessions.values(), (session) =>
    attentionReason(session, gateway.viewRecords[session.id]),
  );
  return reasons.filter((reason) => reason && reason.kind !== "approval").length;
}
