// @vitest-environment happy-dom
/** The document that a growing text leaves behind, node by node. */

import { render } from "preact";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { BlockSplitter } from "../src/markdown/blocks";
import { Markdown } from "../src/markdown/markdown";
import { trickyDocuments } from "./documents";
import { LivingDom } from "./living_dom";
import { randomDocument } from "./random";

let dom: LivingDom;

beforeEach(() => {
  dom = new LivingDom();
});

afterEach(() => void vi.unstubAllGlobals());

function drawnWhole(text: string): Element {
  const root = document.createElement("div");
  render(<Markdown text={text} isGrowing={true} />, root);
  return root.firstElementChild!;
}

/** Draw a text as it grows by so many characters at a time; return how often nodes were compared. */
function expectEveryPrefixToMatch(text: string, pieceLength: number): number {
  const splitter = new BlockSplitter();
  let blocks = splitter.update("");
  let nodes: ChildNode[] = [];
  let numCompared = 0;
  render(null, dom.root);
  for (let length = pieceLength; length < text.length + pieceLength; length += pieceLength) {
    const prefix = text.slice(0, length);
    render(<Markdown text={prefix} isGrowing={true} />, dom.root);
    const whole = drawnWhole(prefix);
    if (!dom.shown.isEqualNode(whole)) {
      expect({ prefix, grown: dom.shown.innerHTML }).toEqual({ prefix, grown: whole.innerHTML });
    }
    const frozen = numFrozen(blocks, (blocks = splitter.update(prefix)));
    const before = nodes;
    nodes = [...dom.shown.childNodes];
    // A block of one node stands where it stands among the blocks.
    if (nodes.length !== blocks.length) continue;
    for (let index = 0; index < Math.min(frozen, before.length); index += 1) {
      expect(nodes[index]).toBe(before[index]);
      numCompared += 1;
    }
  }
  return numCompared;
}

/** Return how many of the first blocks can no longer change. */
function numFrozen(before: readonly object[], after: readonly object[]): number {
  const first = before.findIndex((block, index) => block !== after[index]);
  return first === -1 ? before.length : first;
}

describe("a text that grows", () => {
  const seeds = Array.from({ length: 100 }, (_, index) => 1 + 4 * index);
  let numCompared = 0;

  test.each(trickyDocuments)("leaves what drawing it whole leaves: %s", (_, text) => {
    expectEveryPrefixToMatch(text, 1);
  });

  test.each(seeds)("leaves that in random document %i too, and never replaces what is closed", (seed) => {
    numCompared += expectEveryPrefixToMatch(randomDocument(seed), 2 + (seed % 9));
  });

  test("is compared often", () => expect(numCompared).toBeGreaterThan(1_000));
});
