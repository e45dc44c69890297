/**
 * What a physical page is used for, from the one character that the server has for it.
 *
 * Owns the kinds in the order of the legend. How many hold a page is told up to nine.
 */

import type { WireCacheWorker } from "../wire/cache_snapshot";

export const pageKinds = [
  "free",
  "single",
  "shared2",
  "shared3",
  "shared5",
  "cached",
  "pinned",
  "hidden",
] as const;
export type PageKind = (typeof pageKinds)[number];

const kindsOfCharacters: Record<string, PageKind> = {
  ".": "free",
  u: "single",
  2: "shared2",
  3: "shared3",
  4: "shared3",
  5: "shared5",
  6: "shared5",
  7: "shared5",
  8: "shared5",
  9: "shared5",
  c: "cached",
  p: "pinned",
};

/** By character code: the maps of large pools are looked up thousands of times a second. */
const kindsOfCodes: readonly PageKind[] = Array.from(
  { length: 128 },
  (_, code) => kindsOfCharacters[String.fromCharCode(code)] ?? "hidden",
);

/** Return what page `pageId` is used for; what is not told is not the viewer's. */
export function kindOf(pages: string, pageId: number): PageKind {
  return kindsOfCodes[pages.charCodeAt(pageId)] ?? "hidden";
}

/** Return how many requests hold a page, or null where the map does not say. */
export function numHolders(pages: string, pageId: number): number | null {
  const character = pages[pageId];
  if (character === "u") return 1;
  return character !== undefined && /\d/.test(character) ? Number(character) : null;
}

export type PageCounts = Record<PageKind | "copied", number>;

export function countPages({ pages, copied_pages }: WireCacheWorker): PageCounts {
  const counts: PageCounts = {
    free: 0,
    single: 0,
    shared2: 0,
    shared3: 0,
    shared5: 0,
    cached: 0,
    pinned: 0,
    hidden: 0,
    copied: copied_pages.length,
  };
  for (let pageId = 0; pageId < pages.length; pageId += 1) counts[kindOf(pages, pageId)] += 1;
  return counts;
}
