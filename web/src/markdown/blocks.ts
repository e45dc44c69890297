/**
 * A growing Markdown text as a list of blocks of which only the last can still change.
 *
 * Owns the split of one text. A block is closed once the block after it has two complete lines: the
 * first decides where a block begins, the second whether that is a heading or a table, and from
 * there on no further character reaches back; mathematics that is still open keeps what it may
 * swallow open too. Closed blocks keep their identity, and the next update parses only what
 * follows them, of a long block only what is not settled yet.
 *
 * Rejected: parsing everything once a frame, which costs a second of a processor per long answer.
 */

import type { Token } from "marked";

import { lex } from "./language";
import { openMathStart } from "./math_syntax";
import { settle, type Settled } from "./settled";

export interface Block {
  /** Where the block begins in the text: its key, and stable while the text only grows. */
  readonly start: number;
  readonly token: Token;
}

export class BlockSplitter {
  #closed: Block[] = [];
  /** Where the first block begins that is not closed. */
  #openStart = 0;
  /** The settled part of that block. */
  #settled: Settled | null = null;
  /** All that is not parsed again: the closed blocks and what is settled. */
  #readText = "";

  /** Return the blocks of `text`; those closed before are the same objects as before. */
  update(text: string): readonly Block[] {
    const normal = normalizeLineEndings(text);
    // Comparing whole strings compares memory; `startsWith` goes character by character.
    if (normal.slice(0, this.#readText.length) !== this.#readText) this.#reset();
    const open = this.#parseOpen(normal);
    const numClosed = countClosed(open, normal, this.#openStart);
    const blocks = [...this.#closed, ...open];
    if (numClosed > 0) this.#close(open.slice(0, numClosed));
    this.#settle(open[numClosed], normal);
    return blocks;
  }

  #reset(): void {
    this.#closed = [];
    this.#openStart = 0;
    this.#settled = null;
    this.#readText = "";
  }

  #parseOpen(text: string): Block[] {
    return this.#parseUnsettled(text) ?? parse(text.slice(this.#openStart), this.#openStart);
  }

  #parseUnsettled(text: string): Block[] | null {
    if (this.#settled === null) return null;
    const { preamble } = this.#settled;
    const offset = this.#readText.length - preamble.length;
    const [first, ...others] = parse(preamble + text.slice(this.#readText.length), offset);
    const token = first === undefined ? null : this.#settled.join(first.token);
    if (first === undefined || token === null) return null;
    const raw = text.slice(this.#openStart, offset + first.token.raw.length);
    return [{ start: this.#openStart, token: { ...token, raw } as Token }, ...others];
  }

  #close(blocks: readonly Block[]): void {
    this.#closed = [...this.#closed, ...blocks];
    this.#settled = null;
  }

  #settle(block: Block | undefined, text: string): void {
    this.#openStart = block?.start ?? 0;
    this.#settled = block === undefined ? null : settle(block.token, this.#settled);
    this.#readText = text.slice(0, this.#openStart + (this.#settled?.length ?? 0));
  }
}

/** Return the blocks of a whole text that begins at `offset`. */
export function parse(text: string, offset = 0): Block[] {
  const blocks: Block[] = [];
  let start = offset;
  for (const token of lex(normalizeLineEndings(text))) {
    if (token.type !== "space") blocks.push({ start, token });
    start += token.raw.length;
  }
  return blocks;
}

function normalizeLineEndings(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}

/** Return how many blocks from the first on can no longer change. */
function countClosed(blocks: readonly Block[], text: string, openStart: number): number {
  const lastLine = text.lastIndexOf("\n");
  const lastButOne = text.lastIndexOf("\n", lastLine - 1);
  let numClosed = blocks.length - 1;
  while (numClosed > 0 && (blocks[numClosed]?.start ?? 0) > lastButOne) numClosed -= 1;
  if (numClosed <= 0) return 0;
  const mathStart = openStart + openMathStart(text.slice(openStart));
  while (numClosed > 0 && (blocks[numClosed]?.start ?? 0) > mathStart) numClosed -= 1;
  return numClosed;
}
