// @vitest-environment happy-dom
/** What opening a long answer costs at a time, counted in work and not in seconds. */

import { Lexer } from "marked";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Markdown } from "../src/markdown/markdown";
import { maxTypesetAtOnce, typesetter } from "../src/markdown/math";
import * as mathml from "../src/markdown/mathml";
import { maxPieceChars } from "../src/markdown/pieces";
import { maxRevealedAtOnce, nextBeginning } from "../src/markdown/revealed";
import { LivingDom } from "./living_dom";
import { renderWhole } from "./whole";

let dom: LivingDom;

beforeEach(() => {
  dom = new LivingDom();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Draw a text to its end; return the most characters that were read, and nodes drawn, at a time. */
async function open(text: string): Promise<{ read: number; drawn: number; steps: number }> {
  const lex = vi.spyOn(Lexer.prototype, "lex");
  const most = { read: 0, drawn: 0, steps: 0 };
  let numNodes = 0;
  dom.draw(<Markdown text={text} isGrowing={false} />);
  do {
    const nodes = dom.shown.querySelectorAll("*").length;
    most.drawn = Math.max(most.drawn, nodes - numNodes);
    most.read = Math.max(most.read, lex.mock.calls.reduce((sum, [read]) => sum + read.length, 0));
    most.steps += 1;
    numNodes = nodes;
    lex.mockClear();
  } while (await dom.idle());
  return most;
}

// A step reads its piece, and of what it goes on from as much as makes that what it is.
const maxRead = maxRevealedAtOnce + 2 * maxPieceChars;

describe("a long block", () => {
  test.each([
    ["list", "- an item of a list\n".repeat(3_000)],
    ["table", `| a | b |\n| - | - |\n${"| one | two |\n".repeat(2_000)}`],
    ["fence", `\`\`\`\n${"a line of code\n".repeat(5_000)}\`\`\`\n`],
    ["paragraph", "some words of a paragraph\n".repeat(5_000)],
    ["row of paragraphs", "A paragraph.\n\n".repeat(4_000)],
  ])("is drawn a piece at a time, and whole in the end: %s", { timeout: 120_000 }, async (_, text) => {
    const { read, drawn, steps } = await open(text);

    expect(read).toBeLessThan(maxRead);
    expect(drawn).toBeLessThan(maxRevealedAtOnce / 3);
    expect(steps).toBeGreaterThan(text.length / maxRevealedAtOnce);
    expect(dom.shown.innerHTML).toBe(normal(renderWhole(text)));
  });
});

/** Return markup as the document writes it. */
function normal(html: string): string {
  const template = document.createElement("div");
  template.innerHTML = html;
  return template.innerHTML;
}

test("of many formulas some are typeset at a time, and all in the end", async () => {
  await typesetter.request();
  const typeset = vi.spyOn(mathml, "typeset");
  dom.draw(<Markdown text={"$$\nx_1\n$$\n\n".repeat(200)} isGrowing={false} />);
  const numAtOnce: number[] = [];
  do {
    numAtOnce.push(typeset.mock.calls.length);
    typeset.mockClear();
  } while (await dom.idle());

  expect(Math.max(...numAtOnce)).toBeLessThanOrEqual(maxTypesetAtOnce);
  expect(numAtOnce.reduce((sum, number) => sum + number)).toBe(200);
  expect(dom.shown.querySelectorAll("math")).toHaveLength(200);
  expect(dom.shown.querySelector(".source")).toBeNull();
});

describe("the beginning that is drawn", () => {
  test("ends with a line where there is one", () => {
    const text = "word\n".repeat(4_000);

    expect(nextBeginning(text, "")).toHaveLength(maxRevealedAtOnce);
    expect(nextBeginning(`${text}end`, text)).toBe(`${text}end`);
  });

  test("parts no character", () => {
    const text = `x${"🎉".repeat(maxRevealedAtOnce)}`;

    expect(nextBeginning(text, "").endsWith("🎉")).toBe(true);
  });

  test("starts over with another text", () => {
    expect(nextBeginning("other", "text")).toBe("other");
  });
});
