/**
 * The one address that the content security policy lets a script be loaded from by name.
 *
 * Owns the page's only Trusted Types policy, which knows this address and no other. No HTML is made
 * from strings anywhere, so there is no policy for that.
 */

interface Factory {
  createPolicy(
    name: string,
    rules: { createScriptURL(input: string): string },
  ): { createScriptURL(input: string): string };
}

/** Return the address of the service worker, in the form that the browser asks for. */
export function workerUrl(): string {
  const address = new URL("sw.js", document.baseURI).href;
  const factory = (globalThis as { trustedTypes?: Factory }).trustedTypes;
  if (factory === undefined) return address;
  return factory.createPolicy("chatserve", { createScriptURL: () => address }).createScriptURL("");
}
