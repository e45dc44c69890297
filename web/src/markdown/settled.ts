/**
 * The part of a growing block that no further character can change.
 *
 * A long fence, table, list or paragraph is one block, and parsing all of it for each piece of text
 * would cost the square of its length. So its settled lines, rows or items are kept, and the parser
 * reads on from the last of them behind a short preamble that puts it into the same state: the
 * opening line of the fence, the head of the table, a first item for the list, a line too long to
 * become a heading for the paragraph. Quotes have no such part: they are read anew each time, until
 * they are closed.
 */

import type { MarkedToken, Token, Tokens } from "marked";

import { isClosedFence } from "./fences";
import { plainTokens } from "./language";
import { maxParagraphLength, mayEndAtMath } from "./math_syntax";

export interface Settled {
  /** How much of the block's text is settled. */
  readonly length: number;
  /** What the parser reads in front of the rest of the text. */
  readonly preamble: string;
  /** Return the whole block, given the token that was read from the preamble on, or null. */
  join(rest: Token): MarkedToken | null;
}

/** Return the settled part of a block, given what was settled of it before; null if nothing is. */
export function settle(token: Token, before: Settled | null): Settled | null {
  const block = token as MarkedToken;
  switch (block.type) {
    case "code":
      return isClosedFence(block.raw) ? before : settleFence(block);
    case "table":
      return settleTable(block, before);
    case "paragraph":
      return settleParagraph(block);
    case "list":
      return settleList(block, before instanceof SettledList ? before : null);
    default:
      return null;
  }
}

/** Return where the last complete line begins; whatever comes after a text can change only that. */
function lastCompleteLine(raw: string): number {
  return raw.lastIndexOf("\n", raw.lastIndexOf("\n") - 1) + 1;
}

function settleFence(code: Tokens.Code): Settled | null {
  const { raw } = code;
  const preamble = raw.slice(0, raw.indexOf("\n") + 1);
  const length = lastCompleteLine(raw);
  // An indented fence takes its indentation off its lines; those are rare enough to read anew.
  if (!/^[`~]/.test(preamble) || length <= preamble.length) return null;
  const text = raw.slice(preamble.length, length);
  return {
    length,
    preamble,
    join: (rest) => (isOfType(rest, "code") ? { ...code, ...rest, text: text + rest.text } : null),
  };
}

function settleTable(table: Tokens.Table, before: Settled | null): Settled | null {
  const { raw } = table;
  const head = raw.indexOf("\n", raw.indexOf("\n") + 1) + 1;
  const length = lastCompleteLine(raw);
  if (head === 0 || length <= head) return null;
  // The parser drops rows that are blank where there are no others.
  if (raw.slice(length).trim() === "") return before;
  const rows = table.rows.slice(0, numLines(raw.slice(head, length)));
  return {
    length,
    preamble: raw.slice(0, head),
    join: (rest) =>
      isOfType(rest, "table")
        ? { ...rest, header: table.header, rows: [...rows, ...rest.rows] }
        : null,
  };
}

const longLine = `${"x".repeat(maxParagraphLength)}\n`;

/**
 * A paragraph that is too long to become a heading, or to be ended by mathematics. Its last two
 * lines may yet turn out to be the head of a table.
 */
function settleParagraph({ raw }: Tokens.Paragraph): Settled | null {
  const length = lastCompleteLine(raw);
  if (length <= maxParagraphLength || mayEndAtMath(raw)) return null;
  const settled = raw.slice(0, length);
  return {
    length,
    preamble: longLine,
    join(rest) {
      if (!isOfType(rest, "paragraph")) return null;
      const text = `${settled}${rest.raw.slice(longLine.length)}`.replace(/\n$/, "");
      return { ...rest, text, tokens: plainTokens(text) };
    },
  };
}

function numLines(text: string): number {
  return text.split("\n").length - 1;
}

/** The list without its last two items: what follows may yet turn out to belong to the last one. */
function settleList(list: Tokens.List, before: SettledList | null): Settled | null {
  const items = list.items.slice(0, -2);
  if (before !== null && items.length <= before.items.length) return before;
  const added = items.slice(before?.items.length ?? 0);
  const length = added.reduce((sum, item) => sum + item.raw.length, before?.length ?? 0);
  // Only an item without indentation ends whatever item stands before it.
  if (items.length === 0 || !/^\S/.test(list.raw.slice(length))) return null;
  const isSpaced = before?.isSpaced === true || added.some(isSpacedItem);
  return new SettledList(list, items, length, isSpaced);
}

/** Return whether an item makes its list loose, by a blank line within or behind it. */
function isSpacedItem({ raw, tokens }: Tokens.ListItem): boolean {
  const hasBlankLine = ({ type, raw: space }: Token) => type === "space" && /\n.*\n/.test(space);
  return /\n[ \t]*\n[ \t]*$/.test(raw) || tokens.some(hasBlankLine);
}

class SettledList implements Settled {
  readonly preamble: string;

  constructor(
    readonly list: Tokens.List,
    readonly items: Tokens.ListItem[],
    readonly length: number,
    readonly isSpaced: boolean,
  ) {
    const bullet = /^\s*(?:[-*+]|\d{1,9}[.)])/.exec(list.raw)?.[0].trimStart() ?? "-";
    this.preamble = `${bullet} x\n${isSpaced ? "\n" : ""}`;
  }

  /** One blank line makes all items loose: those that were read as tight must be read again. */
  join(rest: Token): MarkedToken | null {
    if (!isOfType(rest, "list") || rest.loose !== this.list.loose) return null;
    return { ...rest, start: this.list.start, items: [...this.items, ...rest.items.slice(1)] };
  }
}

function isOfType<Type extends MarkedToken["type"]>(
  token: Token,
  type: Type,
): token is Extract<MarkedToken, { type: Type }> {
  return token.type === type;
}
