/// <reference lib="webworker" />
/**
 * The service worker: it keeps the shell of the app, so that the app opens while the gateway is away and says so itself.
 *
 * The page always comes from the network first, so code is never stale; files with a hash in their name never change and come
 * from the cache. Nothing of the API is ever kept.
 */
const worker = self as unknown as ServiceWorkerGlobalScope;

/** Filled in by the build. */
const FILES = __FILES__;
declare const __FILES__: string[];

const scope = new URL(worker.registration.scope);
/** Several gateways may be below one origin: each has caches of its own. A path has no space in it. */
const OURS = `bowline ${scope.pathname} `;
const CACHE = `${OURS}__VERSION__`;

worker.addEventListener("install", (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(CACHE);
      await cache.addAll(["./", ...FILES].map((file) => new URL(file, scope).href));
      await worker.skipWaiting();
    })(),
  );
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      const others = (await caches.keys()).filter((name) => name.startsWith(OURS) && name !== CACHE);
      await Promise.all(others.map((name) => caches.delete(name)));
      await worker.clients.claim();
    })(),
  );
});

worker.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  const path = url.pathname.slice(scope.pathname.length);
  if (event.request.mode === "navigate" && path === "") event.respondWith(page(event.request));
  else if (path.startsWith("assets/")) event.respondWith(file(event.request));
});

/** What a proxy answers for a gateway that is away. */
const AWAY = [502, 503, 504];

/** The page: from the gateway, and only when it is away, the one that belongs to the files kept here. */
async function page(request: Request): Promise<Response> {
  // Not by `open`: a newer worker may have deleted this cache, and it would come back empty.
  const kept = () => caches.match(scope.href, { cacheName: CACHE });
  try {
    const answer = await fetch(request);
    return AWAY.includes(answer.status) ? ((await kept()) ?? answer) : answer;
  } catch (error) {
    const page = await kept();
    if (page) return page;
    throw error;
  }
}

/** A file whose name changes with its contents. */
async function file(request: Request): Promise<Response> {
  return (await caches.match(request.url)) ?? fetch(request);
}
