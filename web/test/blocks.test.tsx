import { Fragment } from "preact";
import { renderToString } from "preact-render-to-string";
import { describe, expect, test } from "vitest";

import { BlockSplitter, parse, type Block } from "../src/markdown/blocks";
import { renderBlock } from "../src/markdown/render";
import { trickyDocuments } from "./documents";

function html(blocks: readonly Block[]): string {
  return renderToString(
    <>
      {blocks.map((block) => (
        <Fragment key={block.start}>{renderBlock(block.token)}</Fragment>
      ))}
    </>,
  );
}

/** A small deterministic generator, so that a failure can be repeated. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

// prettier-ignore
const pieces = [
  "word", " ", "\n", "\n\n", "- ", "* ", "1. ", "> ", "# ", "```", "```js\n", "~~~\n", "`", "**",
  "_", "    ", "  ", "| a | b |\n", "| - | - |\n", "---", "===", "[x](http://a.b)",
  "[x]: http://a", "<div>", "</div>", "![i](u)", "\\", "\t", "\r\n", "- [ ] ", "2) ", "&amp;",
  "http://c.d", "~~", "é漢🎉",
];

function randomDocument(seed: number): string {
  const random = randomFrom(seed);
  const pick = () => pieces[Math.floor(random() * pieces.length)]!;
  return Array.from({ length: 40 }, pick).join("");
}

function expectEveryPrefixToMatch(text: string): void {
  const splitter = new BlockSplitter();
  for (let length = 0; length <= text.length; length += 1) {
    const prefix = text.slice(0, length);
    const grown = html(splitter.update(prefix));
    const whole = html(parse(prefix.replaceAll("\r\n", "\n")));
    if (grown !== whole) expect({ prefix, grown }).toEqual({ prefix, grown: whole });
  }
}

describe("a text that grows", () => {
  test.each(trickyDocuments)("renders every prefix as if parsed whole: %s", (_, text) => {
    expectEveryPrefixToMatch(text);
  });

  test("renders every prefix of random documents as if parsed whole", { timeout: 60_000 }, () => {
    for (let seed = 1; seed <= 60; seed += 1) expectEveryPrefixToMatch(randomDocument(seed));
  });

  test("keeps closed blocks as the same objects", () => {
    const splitter = new BlockSplitter();
    const first = splitter.update("One.\n\nTwo.\n\nThree");

    const second = splitter.update("One.\n\nTwo.\n\nThree and more.");

    expect(second[0]).toBe(first[0]);
    expect(second.map(({ token }) => token.raw)).toEqual(["One.", "Two.", "Three and more."]);
  });

  test("starts over when the text is another one", () => {
    const splitter = new BlockSplitter();
    splitter.update("One.\n\nTwo.\n\nThree.\n");

    expect(html(splitter.update("Other"))).toBe("<p>Other</p>");
  });

  test("holds no block open but the last of a long answer", () => {
    const splitter = new BlockSplitter();
    const text = "A paragraph.\n\n".repeat(200);
    const before = splitter.update(text);

    const after = splitter.update(`${text}More`);

    expect(after.slice(0, 199).filter((block, index) => block !== before[index])).toEqual([]);
  });
});
