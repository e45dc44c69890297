/**
 * A request's logical pages in order as a strip of boxes, with a line from each to its square.
 *
 * Pure geometry. Boxes have room for their number as long as they fill few rows; a long context
 * has smaller ones.
 */

import { placesOf, type DrawnPages } from "./drawn_pages";
import { cornerOf } from "./page_grid";

const largeBox = 28;
const smallBox = 12;
const boxGap = 4;
const maxLargeRows = 3;
/** Room between the strip and the grid, for the lines. */
const linesHeight = 40;

export interface StripBox {
  index: number;
  pageId: number;
  x: number;
  y: number;
  /** The physical square. */
  target: { x: number; y: number; side: number };
}

export interface PageStrip {
  boxes: StripBox[];
  side: number;
  isNumbered: boolean;
  /** Where the grid begins below it. */
  height: number;
}

/** Return the strip over pages that are drawn with pixels of which `pixelRatio` are one of the browser's. */
export function stripOf(
  pages: readonly number[],
  width: number,
  drawn: DrawnPages,
  pixelRatio: number,
): PageStrip {
  const isNumbered = pages.length <= maxLargeRows * perRow(largeBox, width);
  const side = isNumbered ? largeBox : smallBox;
  const columns = perRow(side, width);
  const step = side + boxGap;
  const height = Math.ceil(pages.length / columns) * step - boxGap + linesHeight;
  const { grid } = drawn;
  const places = placesOf(drawn, pages);
  const boxes = pages.map((pageId, index) => {
    const corner = cornerOf(grid, places[index] ?? 0);
    return {
      index,
      pageId,
      x: (index % columns) * step,
      y: Math.floor(index / columns) * step,
      target: {
        x: corner.x / pixelRatio,
        y: corner.y / pixelRatio + height,
        side: (grid.cell - grid.gap) / pixelRatio,
      },
    };
  });
  return { boxes, side, isNumbered, height };
}

/** Return the curve from the lower edge of a box to its square. */
export function lineOf({ x, y, target }: StripBox, side: number): string {
  const from = { x: x + side / 2, y: y + side };
  const to = { x: target.x + target.side / 2, y: target.y };
  const bend = from.y + (to.y - from.y) / 2;
  return `M${from.x} ${from.y}C${from.x} ${bend} ${to.x} ${bend} ${to.x} ${to.y}`;
}

function perRow(side: number, width: number): number {
  return Math.max(1, Math.floor((width + boxGap) / (side + boxGap)));
}
