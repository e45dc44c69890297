/**
 * Whether a message fits into one frame.
 *
 * A larger frame would end the connection with nothing to tell which message did it.
 */

import { formatCount, t } from "../i18n/catalogue";

/** Room for what stands around the text in its frame: the type, three ids and a model's name. */
const frameRestBytes = 512;
const maxBytesPerUnit = 6;

/** Return why a message is too large to send, or null; `maxBytes` is null until it is known. */
export function oversizeWords(text: string, maxBytes: number | null): string | null {
  if (maxBytes === null) return null;
  const limit = Math.max(0, maxBytes - frameRestBytes);
  // Most messages are so short that nothing needs to be encoded at each key.
  if (text.length * maxBytesPerUnit + 2 <= limit) return null;
  const size = new TextEncoder().encode(JSON.stringify(text)).length;
  if (size <= limit) return null;
  return t("composer.tooLong", { size: formatCount(size), limit: formatCount(limit) });
}
