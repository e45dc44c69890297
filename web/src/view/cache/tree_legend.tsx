/** What colours that are there, sizes and rings of the tree mean. */

import { scopeName } from "../../cache/node_words";
import { t } from "../../i18n/catalogue";
import type { NodeScope, WireCacheNode } from "../../wire/cache_snapshot";

const scopes: readonly NodeScope[] = ["public", "mine", "other"];

export function TreeLegend({ nodes }: { nodes: readonly WireCacheNode[] }) {
  const present = scopes.filter((scope) => nodes.some((node) => node.scope === scope));
  return (
    <ul class="legend">
      {present.map((scope) => (
        <li key={scope}>
          <span class="swatch scope-swatch" data-scope={scope} />
          {scopeName(scope)}
        </li>
      ))}
      <li>
        <span class="swatch ring-swatch" />
        {t("cache.legend.pinned")}
      </li>
      <li class="meaning">{t("cache.legend.sizes")}</li>
    </ul>
  );
}
