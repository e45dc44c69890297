import { Fragment } from "preact";
import { renderToString } from "preact-render-to-string";
import { describe, expect, test } from "vitest";

import { BlockSplitter, parse, type Block } from "../src/markdown/blocks";
import { renderBlock } from "../src/markdown/render";
import { trickyDocuments } from "./documents";
import { randomDocument } from "./random";

function html(blocks: readonly Block[]): string {
  return renderToString(
    <>
      {blocks.map((block) => (
        <Fragment key={block.start}>{renderBlock(block.token)}</Fragment>
      ))}
    </>,
  );
}

/** Return how many of the first blocks are the same objects. */
function numSame(before: readonly Block[], after: readonly Block[]): number {
  const first = before.findIndex((block, index) => block !== after[index]);
  return first === -1 ? before.length : first;
}

function expectEveryPrefixToMatch(text: string, from = 0, pieceLength = 1): void {
  const splitter = new BlockSplitter();
  let before: readonly Block[] = [];
  let numFrozen = 0;
  for (let length = from; length <= text.length; length += pieceLength) {
    const prefix = text.slice(0, length);
    const blocks = splitter.update(prefix);
    const grown = html(blocks);
    const whole = html(parse(prefix));
    if (grown !== whole) expect({ prefix, grown }).toEqual({ prefix, grown: whole });
    const frozen = numSame(before, blocks);
    if (frozen < numFrozen) expect({ prefix, frozen }).toEqual({ prefix, frozen: numFrozen });
    numFrozen = frozen;
    before = blocks;
  }
}

describe("a text that grows", () => {
  test.each(trickyDocuments)("renders every prefix as if parsed whole: %s", (_, text) => {
    expectEveryPrefixToMatch(text);
  });

  test("renders every prefix of random documents as if parsed whole", { timeout: 120_000 }, () => {
    for (let seed = 1; seed <= 400; seed += 1) expectEveryPrefixToMatch(randomDocument(seed));
  });

  test.each(trickyDocuments)("goes on from a long paragraph as if parsed whole: %s", (_, text) => {
    const paragraph = "some words of a long paragraph\n".repeat(180);

    expectEveryPrefixToMatch(`${paragraph}${text}`, paragraph.length, 4);
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

    expect(html(splitter.update("Other"))).toBe('<p dir="ltr">Other</p>');
  });

  test("holds no block open but the last of a long answer", () => {
    const splitter = new BlockSplitter();
    const text = "A paragraph.\n\n".repeat(200);
    const before = splitter.update(text);

    const after = splitter.update(`${text}More`);

    expect(after.slice(0, 199).filter((block, index) => block !== before[index])).toEqual([]);
  });
});
