/** The service worker, as the page sees it: it is registered, asked for a newer one, and heard when there is one. */
import { notice } from "./notices.svelte.ts";

let registered: Promise<ServiceWorkerRegistration | undefined> | undefined;

/** Registers the worker. Service workers exist in secure contexts alone; without one, the app works all the same. */
export function keepShell(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  addEventListener("load", () => {
    registered = serviceWorker.register(workerUrl()).catch(() => undefined);
    // A browser looks for a newer worker by itself, but in its own time.
    if (serviceWorker.controller) void checkShell();
  });
  serviceWorker.addEventListener("controllerchange", () => {
    const worker = serviceWorker.controller;
    // It takes over before it has put the old files away.
    if (worker?.state === "activated") void tellIfOld();
    else worker?.addEventListener("statechange", () => void (worker.state === "activated" && tellIfOld()));
  });
}

/** The gateway is back, perhaps as a newer one: looks for a newer app. */
export async function checkShell(): Promise<void> {
  try {
    await (await registered)?.update();
  } catch {
    // The gateway is away again.
  }
}

/** A worker keeps the files of its own version alone. Without this page's script, the page is an older one. */
async function tellIfOld(): Promise<void> {
  if (await caches.match(import.meta.url)) return;
  notice("Bowline was updated", {
    body: "This page is still the one from before.",
    action: "Load the new one",
    act: () => location.reload(),
    stays: true,
  });
}

/** The worker's address, in the form that a policy of trusted types asks for: it can be no other. */
function workerUrl(): string {
  interface Policies {
    createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string };
  }
  const { trustedTypes } = window as { trustedTypes?: Policies };
  return trustedTypes?.createPolicy("bowline", { createScriptURL: () => "./sw.js" }).createScriptURL("") ?? "./sw.js";
}
