/**
 * The service worker: serves the built page while its server is away.
 *
 * Never touches the API. A new version waits until the tabs of the old one are closed, so that none
 * of them misses a file; a new page is shown at the next load all the same, since the document
 * comes from the server whenever that is there.
 */

import { ShellCache, type Shell } from "./shell_cache";

declare const self: ServiceWorkerGlobalScope;
/** The build puts in the list of its files. */
declare const __SHELL__: Shell;

const cache = new ShellCache(__SHELL__, self.registration.scope);

self.addEventListener("install", (event) => event.waitUntil(cache.fill()));
self.addEventListener("activate", (event) => {
  event.waitUntil(cache.dropOthers().then(() => self.clients.claim()));
});
self.addEventListener("fetch", (event) => {
  const reply = cache.replyTo(event);
  if (reply !== null) event.respondWith(reply);
});
