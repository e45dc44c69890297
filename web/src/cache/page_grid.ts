/**
 * The pool as a grid of small squares, in whole pixels of the screen.
 *
 * Owns the geometry and the painting of the pixels; knows neither the canvas nor its colours. All
 * squares are painted with every snapshot: one pass over the pixels costs less than finding out
 * which ones have changed and drawing those one by one.
 */

import { kindOf, type PageKind } from "./page_states";

const minCell = 2;
const maxCell = 16;
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

/** Return a grid of at most `width` pixels that is about `height` pixels high, or more if it must. */
export function gridOf(numPages: number, width: number, height: number): PageGrid {
  const ideal = Math.floor(Math.sqrt((width * height) / Math.max(1, numPages)));
  const cell = Math.min(maxCell, Math.max(minCell, ideal));
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
  const side = grid.cell - grid.gap;
  for (let pageId = 0; pageId < grid.numPages; pageId += 1) {
    fillSquare(pixels, grid, pageId, 0, side, colours[kindOf(pages, pageId)]);
  }
  const inset = grid.cell < minCellWithMark ? 0 : Math.floor(side / 3);
  for (const pageId of copiedPages) {
    fillSquare(pixels, grid, pageId, inset, side - 2 * inset, colours.copied);
  }
}

function fillSquare(
  pixels: Uint32Array,
  grid: PageGrid,
  pageId: number,
  inset: number,
  side: number,
  colour: number,
): void {
  const width = grid.columns * grid.cell;
  const corner = cornerOf(grid, pageId);
  for (let row = 0; row < side; row += 1) {
    const start = (corner.y + inset + row) * width + corner.x + inset;
    pixels.fill(colour, start, start + side);
  }
}
