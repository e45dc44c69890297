/**
 * Which way a block is read: its first letter outside code, formulas and marks decides.
 *
 * A browser's `dir="auto"` does not look into what has a direction of its own, so it would know none
 * for a list or a quote of blocks that have one.
 */

/** Far into a long block no reader looks for its direction, and it is asked for once a frame. */
const maxLength = 500;
// What is not closed yet counts too, or the block would turn round once it is.
const asides = /`[^`]*(?:`|$)|\\\(.*?(?:\\\)|$)|\\\[.*?(?:\\\]|$)|\$\$.*?(?:\$\$|$)|\[x\]|&#?\w+;/gis;
const rightToLeft = /\p{Script=Arabic}|\p{Script=Hebrew}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}/u;

/**
 * That of what the block stands in. An attribute that comes and goes would be left behind as this
 * empty one, which the type of the attribute does not know.
 */
const inherited = "" as "auto";

/** Return the direction of a block, which its source tells. */
export function directionOf(source: string): "ltr" | "rtl" | typeof inherited {
  const letter = /\p{L}/u.exec(source.slice(0, maxLength).replace(asides, ""))?.[0];
  if (letter === undefined) return inherited;
  return rightToLeft.test(letter) ? "rtl" : "ltr";
}
