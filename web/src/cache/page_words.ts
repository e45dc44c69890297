/** What is said of a physical page, and of all of them. */

import { formatCount, plural, t } from "../i18n/catalogue";
import type { WireCacheWorker } from "../wire/cache_snapshot";
import { kindOf, numHolders, pageKinds, type PageCounts } from "./page_states";

export function pageWords(worker: WireCacheWorker, pageId: number): string {
  const holders = numHolders(worker.pages, pageId);
  const state =
    holders === null
      ? t(`cache.page.${kindOf(worker.pages, pageId)}`)
      : plural("cache.pageHolders", holders);
  const page = t("cache.pageNumber", { number: formatCount(pageId), state });
  return worker.copied_pages.includes(pageId) ? `${page}, ${t("cache.page.copied")}` : page;
}

/** Return the counts in a sentence, those of what there is none of left out. */
export function countsInWords(counts: PageCounts): string {
  const kinds = [...pageKinds, "copied" as const].filter((kind) => counts[kind] > 0);
  return kinds.map((kind) => `${t(`cache.page.${kind}`)}: ${formatCount(counts[kind])}`).join(", ");
}
