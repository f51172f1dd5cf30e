/** The start: the login code leaves the address bar before anything else, then the app appears. */
import { mount } from "svelte";
import App from "./app/App.svelte";
import { gateway } from "./app/gateway.svelte.ts";
import { page } from "./app/page.svelte.ts";
import { loginCode } from "./app/route.ts";
import { keepShell } from "./app/shell.ts";
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

keepShell();
