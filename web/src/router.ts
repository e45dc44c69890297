/** Which session the address names: `#/c/<id>` is a session, anything else a new chat. */

const pattern = /^#\/c\/([^/]+)$/;

export function sessionIdIn(hash: string): string | null {
  const match = pattern.exec(hash);
  return match?.[1] === undefined ? null : decodeURIComponent(match[1]);
}

export function hashOf(sessionId: string | null): string {
  return sessionId === null ? "#/" : `#/c/${encodeURIComponent(sessionId)}`;
}
