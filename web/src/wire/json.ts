/**
 * What the page sends, as JSON that any server can read.
 *
 * Half a character (a lone surrogate, as a cut or a paste may leave it) has no bytes: a server would
 * refuse all that stands around it. It is sent as U+FFFD, the character for one that is lost.
 */

/** An escaped backslash, after which no escape begins, or the escape of half a character. */
const halfCharacter = /(\\\\)|\\ud[89a-f]../g;

export function toJson(value: object): string {
  return JSON.stringify(value).replace(halfCharacter, (_, backslash) => backslash ?? "\ufffd");
}
