/** The start: the login code leaves the address bar before anything else, then the app appears. */
import { mount } from "svelte";
import App from "./app/App.svelte";
import { gateway } from "./app/gateway.svelte.ts";
import { page } from "./app/page.svelte.ts";
import { loginCode } from "./app/route.ts";
import "./app/style.css";

const code = loginCode(location.hash);
if (code !== undefined) page.forgetCode();
page.start();
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

// Service workers exist in secure contexts alone; without one, the app works all the same.
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  addEventListener("load", () => void navigator.serviceWorker.register(workerUrl()).catch(() => undefined));
}

/** The worker's address, in the form that a policy of trusted types asks for: it can be no other. */
function workerUrl(): string {
  interface Policies {
    createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string };
  }
  const { trustedTypes } = window as { trustedTypes?: Policies };
  return trustedTypes?.createPolicy("bowline", { createScriptURL: () => "./sw.js" }).createScriptURL("") ?? "./sw.js";
}
