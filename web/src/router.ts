/** What the address names: `#/c/<id>` a conversation, `#/cache` and `#/operator` the two views. */

export type Place =
  | { kind: "chat"; sessionId: string | null }
  | { kind: "cache" }
  | { kind: "operator" };

const session = /^#\/c\/([^/]+)$/;

/** Return the place that an address names; what names none is a new chat. */
export function placeOf(hash: string): Place {
  if (hash === "#/cache") return { kind: "cache" };
  if (hash === "#/operator") return { kind: "operator" };
  return { kind: "chat", sessionId: sessionIdIn(hash) };
}

/** Return the address of a conversation, or of a new chat. */
export function hashOf(sessionId: string | null): string {
  return sessionId === null ? "#/" : `#/c/${encodeURIComponent(sessionId)}`;
}

function sessionIdIn(hash: string): string | null {
  const match = session.exec(hash);
  if (match?.[1] === undefined) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return match[1];
  }
}
