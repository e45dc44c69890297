/** Where a text may be cut: a character may have two halves, and half a character is none. */

/** Return `index`, or the one before it where that would part the halves of a character. */
export function betweenCharacters(text: string, index: number): number {
  const unit = text.charCodeAt(index - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? index - 1 : index;
}

/** Return a beginning of a text that is no longer than this. */
export function beginningOf(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : text.slice(0, betweenCharacters(text, maxLength));
}
