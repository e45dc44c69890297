/**
 * Which pages of the pool are drawn, and in which order: of a small pool all, of a large one those
 * that are used for something.
 *
 * Pure. A place is where a page stands among those that are drawn.
 */

import type { WireCacheWorker } from "../wire/cache_snapshot";
import { gridOf, type PageGrid } from "./page_grid";
import { kindOf, type PageKind } from "./page_states";

/** Squares of this size, in pixels of the page, can be pointed at. */
const minCell = 10;

export interface DrawnPages {
  grid: PageGrid;
  /** The state of each page that is drawn, a character each. */
  states: string;
  /** The number of each page that is drawn; null while that is its place. */
  pageIds: readonly number[] | null;
  /** Pages that are not drawn since nobody uses them, as far as the viewer is told. */
  numLeft: number;
}

/** Return the pages that are drawn in so many pixels of the screen. */
export function drawnPages(
  { pages, num_pages }: WireCacheWorker,
  width: number,
  height: number,
  pixelRatio: number,
): DrawnPages {
  const whole = gridOf(num_pages, width, height);
  if (whole.cell >= minCell * pixelRatio) {
    return { grid: whole, states: pages, pageIds: null, numLeft: 0 };
  }
  const pageIds: number[] = [];
  let states = "";
  for (let pageId = 0; pageId < pages.length; pageId += 1) {
    if (isIdle(kindOf(pages, pageId))) continue;
    pageIds.push(pageId);
    states += pages[pageId];
  }
  const grid = gridOf(pageIds.length, width, height);
  return { grid, states, pageIds, numLeft: pages.length - pageIds.length };
}

/** Return the page at a place. */
export function pageAtPlace({ pageIds }: DrawnPages, place: number): number | null {
  return pageIds === null ? place : (pageIds[place] ?? null);
}

/** Return the places of pages, those left out that are not drawn. */
export function placesOf({ pageIds }: DrawnPages, pages: readonly number[]): number[] {
  if (pageIds === null) return [...pages];
  const places = new Map(pageIds.map((pageId, place) => [pageId, place]));
  return pages.flatMap((pageId) => places.get(pageId) ?? []);
}

function isIdle(kind: PageKind): boolean {
  return kind === "free" || kind === "hidden";
}
