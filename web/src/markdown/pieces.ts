/**
 * A long text in pieces, each laid out by itself: a browser lays out a paragraph as a whole, and all
 * of it again for each word that is added.
 *
 * Where a piece ends depends on nothing behind that, so that a growing text keeps its pieces.
 */

import { betweenCharacters } from "../characters";

export const maxPieceChars = 5_000;

/** Return prose in pieces that end behind a space, where there is one. */
export function piecesOfProse(text: string): string[] {
  return cut(text, (end) => {
    const space = Math.max(text.lastIndexOf(" ", end - 1), text.lastIndexOf("\n", end - 1));
    return space + 1;
  });
}

/** Return code in pieces that end with a line; a line is never cut. */
export function piecesOfCode(code: string): string[] {
  return cut(code, (end, start) => {
    const before = code.lastIndexOf("\n", end - 1) + 1;
    if (before > start) return before;
    const after = code.indexOf("\n", end);
    return after === -1 ? code.length : after + 1;
  });
}

/** `boundary` tells where a piece may end that begins at `start` and would be full at `end`. */
function cut(text: string, boundary: (end: number, start: number) => number): string[] {
  const pieces: string[] = [];
  let start = 0;
  while (text.length - start > maxPieceChars) {
    const end = start + maxPieceChars;
    const found = boundary(end, start);
    const next = found > start ? found : betweenCharacters(text, end);
    pieces.push(text.slice(start, next));
    start = next;
  }
  return start < text.length || start === 0 ? [...pieces, text.slice(start)] : pieces;
}
