/**
 * What counts as mathematics in a Markdown text: `$$…$$`, `\[…\]` and `\(…\)`.
 *
 * A single `$` is a price. Mathematics holds no blank line and no backtick, so that a mark left
 * open reaches neither past its paragraph nor into code; until it is closed it is plain text.
 */

import { Tokenizer, type MarkedOptions, type Tokens } from "marked";

// A type and no interface: the parser's own type of a token has an index signature.
export type MathToken = {
  type: "math";
  raw: string;
  /** The TeX between the marks. */
  source: string;
  isDisplay: boolean;
};

// Backslashes go in pairs with what follows them, so that `\\\\[2pt]` opens nothing. A repeated
// piece never begins with a closing mark: there is one way to read each text, in linear time.
const lineBreak = String.raw`\n(?![ \t]*(?:\n|$))|\\(?=\n)`;
const inDollars = String.raw`[^\\\x60\n$]|\\[^\n\x60]|\$(?!\$)|${lineBreak}`;
const inBrackets = String.raw`[^\\\x60\n]|\\[^\[\]\n\x60]|${lineBreak}`;
const inParentheses = String.raw`[^\\\x60\n]|\\[^()\n\x60]|${lineBreak}`;

const dollars = String.raw`\$\$(?!\$)((?:${inDollars})+)\$\$(?!\$)`;
const brackets = String.raw`\\\[((?:${inBrackets})+)\\\]`;
const parentheses = String.raw`\\\(((?:${inParentheses})+)\\\)`;

const inlineMath = new RegExp(`^(?:${dollars}|${brackets}|${parentheses})`);
const anyMath = new RegExp(`${dollars}|${brackets}|${parentheses}`, "g");
const blockMath = new RegExp(`^ {0,3}(?:${dollars}|${brackets})[ \\t]*(?=\\n|$)`);
// Looking for formulas at each mark of a very long paragraph would take the square of its length.
const maxEmphasisLength = 2_000;
/** So far a paragraph is searched for what makes it another block; further on it stays one. */
export const maxParagraphLength = 5_000;
const blockOpener = /^ {0,3}(?:\$\$|\\\[)/m;

function readMath(pattern: RegExp, text: string): MathToken | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [raw, first, second, inLine] = match;
  const source = (first ?? second ?? inLine ?? "").trim();
  if (source === "") return undefined;
  return { type: "math", raw, source, isDisplay: inLine === undefined };
}

/** Return where in the first `end` characters a line begins a display, after the first; or -1. */
function nextBlockMath(text: string, end: number): number {
  for (let index = text.indexOf("\n") + 1; index > 0 && index < end; ) {
    if (readMath(blockMath, text.slice(index)) !== undefined) return index;
    index = text.indexOf("\n", index) + 1;
  }
  return -1;
}

/** Return where the first block of a text may end at the latest, as far as it is looked at. */
function firstBlankLine(text: string): number {
  const beginning = text.slice(0, maxParagraphLength);
  const index = beginning.search(/\n[ \t]*\n/);
  return index === -1 ? beginning.length : index;
}

/**
 * Return where the part of a text begins that mathematics still to be closed may change: after the
 * last blank line, if there is an opening mark at the start of a line since.
 */
export function openMathStart(text: string): number {
  const start = /[^]*\n[ \t]*\n/.exec(text)?.[0].length ?? 0;
  return blockOpener.test(text.slice(start)) ? start : text.length;
}

/** Return whether a display that begins in a long paragraph may yet end it there. */
export function mayEndAtMath(paragraph: string): boolean {
  return blockOpener.test(paragraph.slice(0, maxParagraphLength));
}

export const mathExtensions: NonNullable<MarkedOptions["extensions"]> = {
  renderers: {},
  childTokens: {},
  startBlock: [(text) => nextBlockMath(text, firstBlankLine(text))],
  block: [(text) => readMath(blockMath, text)],
  startInline: [(text) => text.indexOf("$$")],
  inline: [
    (text, tokens) => {
      const isPrice = text.startsWith("$$") && tokens.at(-1)?.raw.endsWith("$") === true;
      return isPrice ? undefined : readMath(inlineMath, text);
    },
  ],
};

/** What other constructs of the language make of mathematics. */
export class MathTokenizer extends Tokenizer {
  /** An underlined heading ends where a display begins, as a paragraph does. */
  override lheading(text: string): Tokens.Heading | undefined {
    const beginning = text.slice(0, maxParagraphLength);
    const whole = this.rules.block.lheading.exec(beginning);
    if (whole === null || nextBlockMath(beginning, whole[0].length) !== -1) return undefined;
    return super.lheading(beginning);
  }

  /** A star within a formula ends no emphasis. `masked` hides what else holds none. */
  override emStrong(
    text: string,
    masked: string,
    previous?: string,
  ): Tokens.Em | Tokens.Strong | undefined {
    if (!/^[*_]/.test(text) || text.length > maxEmphasisLength) {
      return super.emStrong(text, masked, previous);
    }
    const start = masked.length - text.length;
    let end = start;
    let hidden = masked.slice(0, start);
    for (const { index, 0: math } of text.matchAll(anyMath)) {
      hidden += masked.slice(end, start + index) + "+".repeat(math.length);
      end = start + index + math.length;
    }
    hidden += masked.slice(end);
    return super.emStrong(text, hidden, previous);
  }
}
