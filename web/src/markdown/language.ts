/**
 * The Markdown that models write, as this page reads it.
 *
 * GitHub's dialect with three differences. Raw HTML is no construct of the language: it is text,
 * inline as well as in blocks. Link reference definitions are plain text, so that no block depends
 * on another. Mathematics is one (`math_syntax.ts`).
 */

import { Lexer, Marked, type Token } from "marked";

import { mathExtensions, mathPrecedence } from "./math_syntax";

const language = new Marked({
  gfm: true,
  extensions: mathExtensions,
  tokenizer: {
    ...mathPrecedence,
    html: () => undefined,
    tag: () => undefined,
    def: () => undefined,
  },
});

/** Return the block tokens of a text; their raw texts in a row are the text. */
export function lex(text: string): Token[] {
  return Lexer.lex(text, language.defaults);
}
