/** What colours that are there, sizes and rings of the tree mean. */

import { scopeName } from "../../cache/node_words";
import { plural, t } from "../../i18n/catalogue";
import type { NodeScope, WireCacheNode } from "../../wire/cache_snapshot";

const scopes: readonly NodeScope[] = ["public", "mine", "other"];

interface TreeLegendProps {
  nodes: readonly WireCacheNode[];
  pageSize: number;
}

export function TreeLegend({ nodes, pageSize }: TreeLegendProps) {
  const present = scopes.filter((scope) => nodes.some((node) => node.scope === scope));
  return (
    <ul class="legend">
      {present.map((scope) => (
        <li key={scope}>
          <span class="swatch scope-swatch" data-scope={scope} />
          {scopeName(scope)}
        </li>
      ))}
      {nodes.some(({ pinned }) => pinned) && (
        <li>
          <span class="swatch ring-swatch" />
          {t("cache.legend.pinned")}
        </li>
      )}
      <li class="meaning">{t("cache.legend.sizes")}</li>
      {nodes.some(({ alike }) => alike !== null) && (
        <li class="meaning">{plural("cache.legend.alike", pageSize)}</li>
      )}
    </ul>
  );
}
