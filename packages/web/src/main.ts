/** The start: the login code leaves the address bar before anything else, then the app appears. */
import { mount } from "svelte";
import App from "./app/App.svelte";
import { nameOf, needWords } from "./session/words.ts";
import { settings } from "./state/device.svelte.ts";
import { gateway } from "./state/gateway.svelte.ts";
import { notice } from "./state/notices.svelte.ts";
import { page } from "./state/page.svelte.ts";
import { hrefOf, loginCode } from "./state/route.ts";
import { keepShell } from "./state/shell.ts";
import "./app/style.css";

const code = loginCode(location.hash);
if (code !== undefined) page.forgetCode();
page.start();
gateway.onNeed = (session, need) => {
  if (need.kind === "bell" && !settings.bellNotice) return;
  notice(nameOf(session), { body: needWords(need, session), href: hrefOf({ name: "session", id: session.id }) });
};
void gateway.start(code);
const target = document.getElementById("app");
if (target) mount(App, { target });

// A link that is opened in a tab where the app already runs changes the fragment alone.
addEventListener("hashchange", () => {
  const next = loginCode(location.hash);
  if (next === undefined) return;
  page.forgetCode();
  void gateway.logIn(next);
});

keepShell();
