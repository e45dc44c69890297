/**
 * What a physical page is used for, from the one character that the server has for it.
 *
 * Owns the kinds in the order of the legend. How many hold a page is told up to nine.
 */

import type { CacheViewer, WireCacheWorker } from "../wire/cache_snapshot";

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

/** Return the kinds that a viewer can come upon: whoever sees all is told what is free. */
export function kindsFor(view: CacheViewer): readonly PageKind[] {
  const impossible = view === "all" ? "hidden" : "free";
  return pageKinds.filter((kind) => kind !== impossible);
}

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

/**
 * What each character code stands for, 0 for all that are unknown: large pools are looked up
 * a hundred thousand times a second, which must not cost a string each.
 */
export const kindsOfCodes: readonly PageKind[] = Array.from(
  { length: 128 },
  (_, code) => kindsOfCharacters[String.fromCharCode(code)] ?? "hidden",
);

export function codeOf(pages: string, pageId: number): number {
  const code = pages.charCodeAt(pageId);
  return code < kindsOfCodes.length ? code : 0;
}

/** Return what page `pageId` is used for; what is not told is not the viewer's. */
export function kindOf(pages: string, pageId: number): PageKind {
  return kindsOfCodes[codeOf(pages, pageId)] ?? "hidden";
}

/** Return how many requests hold a page, or null where the map does not say. */
export function numHolders(pages: string, pageId: number): number | null {
  const character = pages[pageId];
  if (character === "u") return 1;
  return character !== undefined && /\d/.test(character) ? Number(character) : null;
}

export type PageCounts = Record<PageKind | "copied", number>;

export function countPages({ pages, copied_pages }: WireCacheWorker): PageCounts {
  const perCode = new Uint32Array(kindsOfCodes.length);
  for (let pageId = 0; pageId < pages.length; pageId += 1) {
    const code = codeOf(pages, pageId);
    perCode[code] = (perCode[code] ?? 0) + 1;
  }
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
  for (const [code, kind] of kindsOfCodes.entries()) counts[kind] += perCode[code] ?? 0;
  return counts;
}
