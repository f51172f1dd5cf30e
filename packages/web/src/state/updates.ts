/** Registers the service worker, checks for newer versions of the app, and offers a reload when one is installed. */
import { showNotice } from "./notices.svelte.ts";

let registration: Promise<ServiceWorkerRegistration | undefined> | undefined;

/** Registers the service worker. Browsers have them in secure contexts only; the app works without one. */
export function registerServiceWorker(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  addEventListener("load", () => {
    registration = serviceWorker.register(workerUrl()).catch(() => undefined);
    // Browsers check for a newer worker themselves, but not on every load.
    if (serviceWorker.controller) void checkForUpdate();
  });
  serviceWorker.addEventListener("controllerchange", () => {
    const worker = serviceWorker.controller;
    // The new worker takes control before it has deleted the old cache.
    if (worker?.state === "activated") void notifyIfOutdated();
    else worker?.addEventListener("statechange", () => void (worker.state === "activated" && notifyIfOutdated()));
  });
}

/** Checks for a newer app. Called when the gateway is reachable again, since it may have been upgraded. */
export async function checkForUpdate(): Promise<void> {
  try {
    await (await registration)?.update();
  } catch {
    // The gateway is unreachable again.
  }
}

/**
 * Offers a reload if this page is outdated. A worker caches only its own version, so an outdated page's
 * script is missing.
 */
async function notifyIfOutdated(): Promise<void> {
  if (await caches.match(import.meta.url)) return;
  showNotice("Bowline was updated", {
    body: "Reload the page to use the new version.",
    action: "Reload",
    onAction: () => location.reload(),
    persistent: true,
  });
}

/** The worker's URL, as a trusted type where the browser requires one. */
function workerUrl(): string {
  interface Policies {
    createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(input: string): string };
  }
  const { trustedTypes } = window as { trustedTypes?: Policies };
  return trustedTypes?.createPolicy("bowline", { createScriptURL: () => "./sw.js" }).createScriptURL("") ?? "./sw.js";
}
