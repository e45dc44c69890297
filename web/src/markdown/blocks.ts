/**
 * A growing Markdown text as a list of blocks of which only the last can still change.
 *
 * Owns the split of one text. A block is closed once the block after it has two complete lines: the
 * first decides where a block begins, the second whether that is a heading or a table, and from
 * there on no further character reaches back. Closed blocks keep their identity, and the next
 * update parses only what follows them. Two rules make this exact:
 *
 * 1. Link reference definitions are plain text here, so that no block depends on another.
 * 2. Raw HTML is no construct of the language here: it is text, inline as well as in blocks.
 *
 * Rejected: parsing everything once a frame, which costs a second of a processor per long answer.
 */

import { Lexer, Marked, type Token } from "marked";

export interface Block {
  /** Where the block begins in the text: its key, and stable while the text only grows. */
  readonly start: number;
  readonly token: Token;
}

const language = new Marked({
  gfm: true,
  tokenizer: {
    html: () => undefined,
    tag: () => undefined,
    def: () => undefined,
  },
});

export class BlockSplitter {
  #closed: Block[] = [];
  #closedText = "";

  /** Return the blocks of `text`; those closed before are the same objects as before. */
  update(text: string): readonly Block[] {
    const normal = text.replaceAll("\r\n", "\n");
    if (!normal.startsWith(this.#closedText)) this.#reset();
    const open = parse(normal.slice(this.#closedText.length), this.#closedText.length);
    const numClosed = countClosed(open, normal);
    if (numClosed === 0) return [...this.#closed, ...open];
    this.#closed = [...this.#closed, ...open.slice(0, numClosed)];
    this.#closedText = normal.slice(0, open[numClosed]?.start);
    return [...this.#closed, ...open.slice(numClosed)];
  }

  #reset(): void {
    this.#closed = [];
    this.#closedText = "";
  }
}

/** Return the blocks of a whole text that begins at `offset`. */
export function parse(text: string, offset = 0): Block[] {
  const blocks: Block[] = [];
  let start = offset;
  for (const token of Lexer.lex(text, language.defaults)) {
    if (token.type !== "space") blocks.push({ start, token });
    start += token.raw.length;
  }
  return blocks;
}

/** Return how many blocks from the first on have a successor with two complete lines. */
function countClosed(blocks: readonly Block[], text: string): number {
  const lastLine = text.lastIndexOf("\n");
  const lastButOne = text.lastIndexOf("\n", lastLine - 1);
  let numClosed = blocks.length - 1;
  while (numClosed > 0 && (blocks[numClosed]?.start ?? 0) > lastButOne) numClosed -= 1;
  return Math.max(0, numClosed);
}
