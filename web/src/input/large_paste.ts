/**
 * Which pastes are too long for a field.
 *
 * A text area lays out all of its lines at every key, so twenty thousand of them would freeze the
 * page for seconds. A long paste is attached instead.
 */

const maxChars = 8_000;
const maxLines = 200;

export function isLarge(text: string): boolean {
  if (text.length > maxChars) return true;
  let lineEnd = -1;
  for (let numLines = 0; numLines < maxLines; numLines++) {
    lineEnd = text.indexOf("\n", lineEnd + 1);
    if (lineEnd === -1) return false;
  }
  return true;
}

/** Return what a paste wants to put into a field if that is too long for it, else null. */
export function largePaste(event: ClipboardEvent): string | null {
  const text = event.clipboardData?.getData("text/plain") ?? "";
  return isLarge(text) ? text : null;
}
