import { Lexer } from "marked";
import { afterEach, describe, expect, test, vi } from "vitest";

import { BlockSplitter } from "../src/markdown/blocks";
import { maxParagraphLength } from "../src/markdown/math_syntax";

const pieceLength = 4;

afterEach(() => void vi.restoreAllMocks());

/** Return how many characters the parser reads while `text` arrives piece by piece. */
function numLexed(text: string): number {
  const lex = vi.spyOn(Lexer.prototype, "lex");
  const splitter = new BlockSplitter();
  let sum = 0;
  for (let length = pieceLength; length <= text.length; length += pieceLength) {
    splitter.update(text.slice(0, length));
    for (const [read] of lex.mock.calls) sum += read.length;
    lex.mockClear();
  }
  lex.mockRestore();
  return sum;
}

const section = [
  "## A heading\n\nA paragraph of some words, **bold** ones and `code`, \\(x^2\\) too.\n\n",
  "- one\n- two\n- three\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n",
  "```python\nprint('hello')\n\nprint('world')\n```\n\n> A quote.\n\n",
].join("");

function repeat(line: string, length: number): string {
  return line.repeat(Math.ceil(length / line.length)).slice(0, length);
}

// Each piece reads at most a few blocks or lines anew, whatever came before.
const maxReadPerPiece = 400;
// A paragraph is read behind as much as makes it a long one.
const maxReadPerPieceOfParagraph = 2 * maxParagraphLength;

describe("the cost of a growing text", () => {
  test.each([
    ["an answer of many blocks", repeat(section, 200_000)],
    ["a long fence", `\`\`\`js\n${repeat("const value = compute(1, 2);\n", 50_000)}`],
    ["a fence of blank lines", `\`\`\`\n${repeat("\n\n\nx\n", 50_000)}`],
    ["a long table", `| a | b |\n| - | - |\n${"| one | two |\n".repeat(2_000)}`],
    ["a long list", "- an item of a list\n".repeat(2_000)],
    ["a long list with blank lines", "1. an item\n\n   and more of it\n\n".repeat(1_000)],
    ["a list after a long text", `${repeat(section, 20_000)}\n${"* x\n".repeat(2_000)}`],
  ])("grows with its length alone: %s", { timeout: 60_000 }, (_, text) => {
    expect(numLexed(text)).toBeLessThan((text.length / pieceLength) * maxReadPerPiece);
  });

  test("grows with its length alone: a long paragraph", () => {
    const text = "some words of a paragraph\n".repeat(2_000);

    const bound = (text.length / pieceLength) * maxReadPerPieceOfParagraph;
    expect(numLexed(text)).toBeLessThan(bound);
  });
});
