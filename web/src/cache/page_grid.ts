/**
 * The pool as a grid of small squares, in whole pixels of the screen.
 *
 * Owns the geometry and the painting of the pixels; knows neither the canvas nor its colours. All
 * squares are painted with every snapshot: one pass over the pixels costs less than finding out
 * which ones have changed and drawing those one by one.
 */

import { codeOf, kindsOfCodes, type PageKind } from "./page_states";

const minCell = 2;
/** A pool of few pages has large squares, but not larger than for so many rows. */
const minRows = 9;
/** Squares below this size touch each other: a line between them would be as wide as they are. */
const minCellWithGap = 4;
const minCellWithMark = 6;

export interface PageGrid {
  numPages: number;
  columns: number;
  rows: number;
  /** Pixels from one square to the next, the line between them included. */
  cell: number;
  gap: number;
}

export type PageColours = Record<PageKind | "copied", number>;

/** Return a grid of at most `width` pixels, about `height` pixels high, or more if it must. */
export function gridOf(numPages: number, width: number, height: number): PageGrid {
  const ideal = Math.floor(Math.sqrt((width * height) / Math.max(1, numPages)));
  const cell = Math.max(minCell, Math.min(ideal, Math.floor(height / minRows)));
  const columns = Math.max(1, Math.floor(width / cell));
  const gap = cell < minCellWithGap ? 0 : Math.max(1, Math.round(cell / 8));
  return { numPages, columns, rows: Math.ceil(numPages / columns), cell, gap };
}

/** Return the page under a point, or null. */
export function pageAt({ numPages, columns, cell }: PageGrid, x: number, y: number): number | null {
  const column = Math.floor(x / cell);
  const row = Math.floor(y / cell);
  const pageId = row * columns + column;
  const isInside = column >= 0 && column < columns && row >= 0 && pageId < numPages;
  return isInside ? pageId : null;
}

/** Return the upper left corner of a page's square. */
export function cornerOf({ columns, cell }: PageGrid, pageId: number): { x: number; y: number } {
  return { x: (pageId % columns) * cell, y: Math.floor(pageId / columns) * cell };
}

/** Paint all squares into the pixels of an image that is as wide as the grid's columns. */
export function paintPages(
  pixels: Uint32Array,
  grid: PageGrid,
  pages: string,
  copiedPages: readonly number[],
  colours: PageColours,
): void {
  const { rows, columns, cell, gap } = grid;
  const width = columns * cell;
  const coloursOfCodes = Uint32Array.from(kindsOfCodes, (kind) => colours[kind]);
  for (let row = 0; row < rows; row += 1) {
    const start = row * cell * width;
    paintLine(pixels, start, grid, row, pages, coloursOfCodes);
    // The other lines of a row of squares are as its first.
    for (let line = 1; line < cell - gap; line += 1) {
      pixels.copyWithin(start + line * width, start, start + width);
    }
  }
  for (const pageId of copiedPages) markCopied(pixels, grid, pageId, colours.copied);
}

function paintLine(
  pixels: Uint32Array,
  start: number,
  { numPages, columns, cell, gap }: PageGrid,
  row: number,
  pages: string,
  coloursOfCodes: Uint32Array,
): void {
  const first = row * columns;
  const end = Math.min(numPages, first + columns);
  for (let pageId = first; pageId < end; pageId += 1) {
    const colour = coloursOfCodes[codeOf(pages, pageId)] ?? 0;
    const left = start + (pageId - first) * cell;
    for (let pixel = left; pixel < left + cell - gap; pixel += 1) pixels[pixel] = colour;
  }
}

function markCopied(pixels: Uint32Array, grid: PageGrid, pageId: number, colour: number): void {
  const side = grid.cell - grid.gap;
  const inset = grid.cell < minCellWithMark ? 0 : Math.floor(side / 3);
  const { x, y } = cornerOf(grid, pageId);
  for (let line = y + inset; line < y + side - inset; line += 1) {
    const start = line * grid.columns * grid.cell + x;
    pixels.fill(colour, start + inset, start + side - inset);
  }
}
