/**
 * The Markdown that models write, as this page reads it.
 *
 * GitHub's dialect with three differences. Raw HTML is no construct of the language: it is text,
 * inline as well as in blocks. Link reference definitions are plain text, so that no block depends
 * on another. Mathematics is one (`math_syntax.ts`).
 */

import { getDefaults, Lexer, type MarkedOptions, type Token, type TokensList } from "marked";

import { mathExtensions, MathTokenizer } from "./math_syntax";
import { maxPieceChars, piecesOfProse } from "./pieces";

class LanguageTokenizer extends MathTokenizer {
  override html(): undefined {}
  override tag(): undefined {}
  override def(): undefined {}
}

const language: MarkedOptions = {
  ...getDefaults(),
  extensions: mathExtensions,
  tokenizer: new LanguageTokenizer(),
};

/**
 * What is longer than this within one block stays plain: the time to find emphasis and links in it
 * grows with the square of its length, and a model or a foreign file may make it as long as it likes.
 */
const maxInlineChars = maxPieceChars;
/** Quotes and lists deeper than this are shown by their marks; each level is a call within a call. */
const maxDepth = 40;

class BoundedLexer extends Lexer {
  #depth = 0;

  /** Add the tokens of a text to `tokens`: whoever asks has that list, and not the result. */
  override blockTokens(text: string, tokens: Token[] = [], isClipped?: boolean): TokensList {
    if (this.#depth === maxDepth) {
      tokens.push(...plainTokens(text));
      return Object.assign(tokens, { links: {} });
    }
    this.#depth += 1;
    try {
      return super.blockTokens(text, tokens, isClipped) as TokensList;
    } finally {
      this.#depth -= 1;
    }
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    if (text.length <= maxInlineChars) return super.inlineTokens(text, tokens);
    tokens.push(...plainTokens(text));
    return tokens;
  }
}

// A type and no interface: the parser's own type of a token has an index signature.
/** A part of a text that is too long for one. */
export type PieceToken = { type: "piece"; raw: string; text: string };

/** Return the tokens of a text in which nothing is looked for. */
export function plainTokens(text: string): Token[] {
  const pieces = piecesOfProse(text);
  if (pieces.length === 1) return [{ type: "text", raw: text, text, escaped: false }];
  return pieces.map((piece): PieceToken => ({ type: "piece", raw: piece, text: piece }));
}

/** Return the block tokens of a text; their raw texts in a row are the text. */
export function lex(text: string): Token[] {
  return new BoundedLexer(language).lex(text);
}
