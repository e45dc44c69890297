/**
 * What the address names: `#/c/<id>` a conversation, `#/c/<id>/<item>` a message of it, `#/cache` and
 * `#/operator` the two views.
 */

export type Place =
  | { kind: "chat"; sessionId: string | null; itemId: string | null }
  | { kind: "cache" }
  | { kind: "operator" };

const session = /^#\/c\/([^/]+)(?:\/([^/]+))?$/;

/** Return the place that an address names; what names none is a new chat. */
export function placeOf(hash: string): Place {
  if (hash === "#/cache") return { kind: "cache" };
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

function decoded(name: string | undefined): string | null {
  if (name === undefined) return null;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
