/** The entry point: removes a login code from the address bar before anything else, then mounts the app. */
import { mount } from "svelte";
import App from "./app/App.svelte";
import { attentionText, nameOf } from "./session/text.ts";
import { settings } from "./state/device.svelte.ts";
import { gateway } from "./state/gateway.svelte.ts";
import { showNotice } from "./state/notices.svelte.ts";
import { page } from "./state/page.svelte.ts";
import { hrefOf, loginCode } from "./state/route.ts";
import { registerServiceWorker } from "./state/updates.ts";
import "./app/style.css";

const code = loginCode(location.hash);
if (code !== undefined) page.removeLoginCode();
page.start();
gateway.onAttention = (session, reason) => {
  // The announcement of approvals shows its own notices.
  if (reason.kind === "approval" || (reason.kind === "bell" && !settings.bellNotice)) return;
  showNotice(nameOf(session), {
    body: attentionText(reason, session),
    href: hrefOf({ name: "session", id: session.id }),
  });
};
void gateway.start(code);
const target = document.getElementById("app");
if (target) mount(App, { target });

// Opening a login link in a tab that already runs the app changes only the fragment.
addEventListener("hashchange", () => {
  const next = loginCode(location.hash);
  if (next === undefined) return;
  page.removeLoginCode();
  void gateway.logIn(next);
});

registerServiceWorker();
