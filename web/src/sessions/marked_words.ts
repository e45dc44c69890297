/** Where in a text the words stand that were looked for. */

/** Return a text in pieces of which every second one is one of the words looked for. */
export function markWords(text: string, words: string): string[] {
  const wanted = words.trim();
  if (wanted === "") return [text];
  const escaped = wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+");
  return text.split(new RegExp(`(${escaped})`, "giu"));
}
