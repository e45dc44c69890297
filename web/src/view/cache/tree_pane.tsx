/** The radix tree: as a picture, and as a table of the same content. */

import "./tree.css";

import { treeSummary } from "../../cache/node_words";
import type { TreeLayout } from "../../cache/tree_layout";
import { plural, t } from "../../i18n/catalogue";
import type { WireCacheWorker } from "../../wire/cache_snapshot";
import { TreeLegend } from "./tree_legend";
import { TreePicture } from "./tree_picture";
import { TreeTable } from "./tree_table";

interface TreePaneProps {
  worker: WireCacheWorker;
  layout: TreeLayout;
}

export function TreePane({ worker, layout }: TreePaneProps) {
  const isEmpty = layout.nodes.length === 0;
  return (
    <section class="pane" aria-labelledby="tree-heading">
      <div class="pane-head">
        <h2 id="tree-heading">{t("cache.tree")}</h2>
        {!isEmpty && <p>{treeSummary(worker.nodes)}</p>}
        {worker.num_hidden_nodes > 0 && (
          <p>{plural("cache.numHidden", worker.num_hidden_nodes)}</p>
        )}
      </div>
      {isEmpty ? (
        <p class="pane-empty">{t("cache.empty")}</p>
      ) : (
        <>
          <TreePicture layout={layout} />
          <TreeLegend nodes={worker.nodes} pageSize={worker.page_size} />
          <TreeTable nodes={worker.nodes} />
        </>
      )}
    </section>
  );
}
