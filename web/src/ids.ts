/** Names that nobody else has given. */

const numBytes = 16;

/** Return a random name; unlike `crypto.randomUUID`, also on a page without a secure context. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(numBytes));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
