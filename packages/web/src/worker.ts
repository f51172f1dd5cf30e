/// <reference lib="webworker" />
/**
 * The service worker: caches the app's files, so that the app opens while the gateway is unreachable.
 *
 * The page is loaded from the network first, so code is never stale. Files with a hash in their name never
 * change and are loaded from the cache. API responses are never cached.
 */
const worker = self as unknown as ServiceWorkerGlobalScope;

/** Replaced by the build with the names of all files below `assets/`. */
const FILES = __FILES__;
declare const __FILES__: string[];

const scope = new URL(worker.registration.scope);
/**
 * The prefix of this gateway's caches: several gateways may share an origin. The space ends the path, which
 * contains none.
 */
const CACHE_PREFIX = `bowline ${scope.pathname} `;
const CACHE = `${CACHE_PREFIX}__VERSION__`;

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
      const outdated = (await caches.keys()).filter((name) => name.startsWith(CACHE_PREFIX) && name !== CACHE);
      await Promise.all(outdated.map((name) => caches.delete(name)));
      await worker.clients.claim();
    })(),
  );
});

worker.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  const path = url.pathname.slice(scope.pathname.length);
  if (event.request.mode === "navigate" && path === "") event.respondWith(respondWithPage(event.request));
  else if (path.startsWith("assets/")) event.respondWith(respondWithFile(event.request));
});

/** Statuses with which a proxy answers for an unreachable gateway. */
const UNREACHABLE = [502, 503, 504];

/** Fetches the page from the gateway. If that is unreachable, uses the cached page that belongs to the cached files. */
async function respondWithPage(request: Request): Promise<Response> {
  // Not `caches.open`: it would create an empty cache if a newer worker has deleted this one.
  const cached = () => caches.match(scope.href, { cacheName: CACHE });
  try {
    const response = await fetch(request);
    return UNREACHABLE.includes(response.status) ? ((await cached()) ?? response) : response;
  } catch (error) {
    const page = await cached();
    if (page) return page;
    throw error;
  }
}

/** Loads a file whose name changes with its contents, from the cache if possible. */
async function respondWithFile(request: Request): Promise<Response> {
  return (await caches.match(request.url)) ?? fetch(request);
}
