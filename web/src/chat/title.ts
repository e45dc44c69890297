/** Long texts in few words: the name a session gets from its first message, and the like. */

import { beginningOf } from "../characters";
import { takeApart } from "../input/attachment";

const maxTitleLength = 60;

/** Return the first words of a message on one line, or the name of what is attached to it. */
export function toTitle(message: string): string {
  const { text, attachments } = takeApart(message);
  const said = text.trim() === "" ? (attachments[0]?.name ?? "") : text;
  return firstWords(said, maxTitleLength);
}

/** Return as many words of a text as there is room for, on one line. */
export function firstWords(text: string, maxLength: number): string {
  const line = text.trim().replace(/\s+/g, " ");
  if (line.length <= maxLength) return line;
  const head = beginningOf(line, maxLength - 1);
  const lastSpace = head.lastIndexOf(" ");
  return `${(lastSpace > 0 ? head.slice(0, lastSpace) : head).trimEnd()}…`;
}
