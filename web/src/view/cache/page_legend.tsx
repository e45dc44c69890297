/** What the colours of the page map mean, and how many pages have each. */

import type { Ref } from "preact";

import { kindsFor, type PageCounts } from "../../cache/page_states";
import { formatCount, t } from "../../i18n/catalogue";
import type { CacheViewer } from "../../wire/cache_snapshot";

interface PageLegendProps {
  view: CacheViewer;
  counts: PageCounts;
  list: Ref<HTMLUListElement>;
}

export function PageLegend({ view, counts, list }: PageLegendProps) {
  return (
    <ul class="legend" ref={list}>
      {[...kindsFor(view), "copied" as const].map((kind) => (
        <li key={kind}>
          <span class="swatch page-swatch" data-page={kind} />
          {t(`cache.page.${kind}`)} <span class="count">{formatCount(counts[kind])}</span>
        </li>
      ))}
    </ul>
  );
}
