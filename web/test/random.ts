/** Random documents that can be made again: the same seed gives the same text. */

// prettier-ignore
const pieces = [
  "word", " ", "\n", "\n\n", "- ", "* ", "1. ", "> ", "# ", "```", "```js\n", "~~~\n", "`", "**",
  "_", "    ", "  ", "| a | b |\n", "| - | - |\n", "---", "===", "[x](http://a.b)",
  "[x]: http://a", "<div>", "</div>", "![i](u)", "\\", "\t", "\r\n", "- [ ] ", "2) ", "&amp;",
  "http://c.d", "~~", "é漢🎉", "$$", "\n$$\n", "\\(", "\\)", "\\[", "\\]", "\n\\[\n", "x_1 = 2",
  "\n- a\n- b\n- c\n", "\n```\nline\nline\nline\n", "\n| a |\n| - |\n| 1 |\n| 2 |\n| 3 |\n",
];

const numPieces = 32;

export function randomDocument(seed: number): string {
  const random = randomFrom(seed);
  const pick = () => pieces[Math.floor(random() * pieces.length)]!;
  return Array.from({ length: numPieces }, pick).join("");
}

export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
