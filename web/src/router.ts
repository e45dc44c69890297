/**
 * What the address names: `#/c/<id>` a conversation, `#/c/<id>/<item>` a message of it, `#/cache` and
 * `#/operator` the two views; `#/cache?tenant=<name>` looks at one tenant's part of the cache.
 */

export type Place =
  | { kind: "chat"; sessionId: string | null; itemId: string | null }
  | { kind: "cache"; tenant: string | null }
  | { kind: "operator" };

const cachePath = "#/cache";
const session = /^#\/c\/([^/]+)(?:\/([^/]+))?$/;

/** Return the place that an address names; what names none is a new chat. */
export function placeOf(hash: string): Place {
  const [path, query] = hash.split("?", 2);
  if (path === cachePath) {
    return { kind: "cache", tenant: new URLSearchParams(query).get("tenant") };
  }
  if (hash === "#/operator") return { kind: "operator" };
  const [, sessionId, itemId] = session.exec(hash) ?? [];
  return { kind: "chat", sessionId: decoded(sessionId), itemId: decoded(itemId) };
}

/** Return the address of a conversation or of a message in it, or of a new chat. */
export function hashOf(sessionId: string | null, itemId: string | null = null): string {
  if (sessionId === null) return "#/";
  const names = itemId === null ? [sessionId] : [sessionId, itemId];
  return `#/c/${names.map(encodeURIComponent).join("/")}`;
}

/** Return the address of the cache view, of all that the viewer may see or of one tenant. */
export function hashOfCache(tenant: string | null): string {
  return tenant === null ? cachePath : `${cachePath}?${new URLSearchParams({ tenant })}`;
}

function decoded(name: string | undefined): string | null {
  if (name === undefined) return null;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
