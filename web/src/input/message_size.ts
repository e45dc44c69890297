/**
 * Whether a message fits into one frame.
 *
 * A larger frame would end the connection with nothing to tell which message did it.
 */

import { formatCount, t } from "../i18n/catalogue";

/** Room for what stands around the text in its frame: the type, three ids and a model's name. */
const frameRestBytes = 512;
const quoteBytes = 2;
const maxBytesPerUnit = 6;

/** Return what a text adds to a frame: its bytes once quotes and line ends are escaped. */
export function wireBytes(text: string): number {
  return new TextEncoder().encode(JSON.stringify(text)).length - quoteBytes;
}

/** Return the largest text that can be sent; `maxBytes` is what a frame may have. */
export function roomFor(maxBytes: number): number {
  return Math.max(0, maxBytes - frameRestBytes);
}

/**
 * Return why a message is too large to send, or null. `maxBytes` is null until it is known;
 * `attachedBytes` come on top of the text.
 */
export function oversizeWords(
  text: string,
  maxBytes: number | null,
  attachedBytes = 0,
): string | null {
  if (maxBytes === null) return null;
  const limit = roomFor(maxBytes);
  // Most messages are so short that nothing needs to be encoded at each key.
  if (text.length * maxBytesPerUnit + quoteBytes + attachedBytes <= limit) return null;
  const size = wireBytes(text) + quoteBytes + attachedBytes;
  if (size <= limit) return null;
  return t("composer.tooLong", { size: formatCount(size), limit: formatCount(limit) });
}
