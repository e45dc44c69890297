/** The name a session gets from its first message. */

const maxLength = 60;

/** Return the first words of a text, on one line. */
export function toTitle(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  if (line.length <= maxLength) return line;
  const head = line.slice(0, maxLength - 1);
  const lastSpace = head.lastIndexOf(" ");
  return `${(lastSpace > 0 ? head.slice(0, lastSpace) : head).trimEnd()}…`;
}
