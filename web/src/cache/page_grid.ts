/**
 * The pool as a grid of small squares, in whole pixels of the screen.
 *
 * Owns the geometry and the painting of the pixels; knows neither the canvas nor its colours. A
 * square's place is its number in reading order; which page has it, drawn_pages.ts knows. All
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
  numPlaces: number;
  columns: number;
  rows: number;
  /** Pixels from one square to the next, the line between them included. */
  cell: number;
  gap: number;
}

/** Of the kinds that the viewer can see. */
export type PageColours = Partial<Record<PageKind | "copied", number>>;

/** Return a grid of at most `width` pixels, about `height` pixels high, or more if it must. */
export function gridOf(numPlaces: number, width: number, height: number): PageGrid {
  const ideal = Math.floor(Math.sqrt((width * height) / Math.max(1, numPlaces)));
  const cell = Math.max(minCell, Math.min(ideal, Math.floor(height / minRows)));
  const columns = Math.max(1, Math.floor(width / cell));
  const gap = cell < minCellWithGap ? 0 : Math.max(1, Math.round(cell / 8));
  return { numPlaces, columns, rows: Math.ceil(numPlaces / columns), cell, gap };
}

/** Return the place under a point, or null. */
export function placeAt({ numPlaces, columns, cell }: PageGrid, x: number, y: number): number | null {
  const column = Math.floor(x / cell);
  const row = Math.floor(y / cell);
  const place = row * columns + column;
  const isInside = column >= 0 && column < columns && row >= 0 && place < numPlaces;
  return isInside ? place : null;
}

/** Return the upper left corner of a place. */
export function cornerOf({ columns, cell }: PageGrid, place: number): { x: number; y: number } {
  return { x: (place % columns) * cell, y: Math.floor(place / columns) * cell };
}

/** Paint all squares into the pixels of an image that is as wide as the grid's columns. */
export function paintPages(
  pixels: Uint32Array,
  grid: PageGrid,
  states: string,
  copiedPlaces: readonly number[],
  colours: PageColours,
): void {
  const { rows, columns, cell, gap } = grid;
  const width = columns * cell;
  const coloursOfCodes = Uint32Array.from(kindsOfCodes, (kind) => colours[kind] ?? 0);
  for (let row = 0; row < rows; row += 1) {
    const start = row * cell * width;
    paintLine(pixels, start, grid, row, states, coloursOfCodes);
    // The other lines of a row of squares are as its first.
    for (let line = 1; line < cell - gap; line += 1) {
      pixels.copyWithin(start + line * width, start, start + width);
    }
  }
  for (const place of copiedPlaces) markCopied(pixels, grid, place, colours.copied ?? 0);
}

function paintLine(
  pixels: Uint32Array,
  start: number,
  { numPlaces, columns, cell, gap }: PageGrid,
  row: number,
  states: string,
  coloursOfCodes: Uint32Array,
): void {
  const first = row * columns;
  const end = Math.min(numPlaces, first + columns);
  for (let place = first; place < end; place += 1) {
    const colour = coloursOfCodes[codeOf(states, place)] ?? 0;
    const left = start + (place - first) * cell;
    for (let pixel = left; pixel < left + cell - gap; pixel += 1) pixels[pixel] = colour;
  }
}

function markCopied(pixels: Uint32Array, grid: PageGrid, place: number, colour: number): void {
  const side = grid.cell - grid.gap;
  const inset = grid.cell < minCellWithMark ? 0 : Math.floor(side / 3);
  const { x, y } = cornerOf(grid, place);
  for (let line = y + inset; line < y + side - inset; line += 1) {
    const start = line * grid.columns * grid.cell + x;
    pixels.fill(colour, start + inset, start + side - inset);
  }
}
