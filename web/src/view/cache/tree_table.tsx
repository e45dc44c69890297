/** The tree as a table, for whoever would rather read than look. */

import { useSignal } from "@preact/signals";

import { inOrder, nodeOrders, type NodeOrder } from "../../cache/node_order";
import { ownerOf } from "../../cache/node_words";
import { formatAge } from "../../i18n/age";
import { formatCount, plural, t } from "../../i18n/catalogue";
import type { WireCacheNode } from "../../wire/cache_snapshot";
import { NodeHead } from "./node_head";

const rowsAtOnce = 100;
const notTold = "–";

export function TreeTable({ nodes }: { nodes: readonly WireCacheNode[] }) {
  const isOpen = useSignal(false);
  return (
    <details
      class="tree-table"
      onToggle={(event) => (isOpen.value = event.currentTarget.open)}
    >
      <summary>{t("cache.asTable")}</summary>
      {isOpen.value && <NodeTable nodes={nodes} />}
    </details>
  );
}

export function NodeTable({ nodes }: { nodes: readonly WireCacheNode[] }) {
  const order = useSignal<NodeOrder>("tokens");
  const numShown = useSignal(rowsAtOnce);
  const rows = inOrder(nodes, order.value).slice(0, numShown.value);
  const numLeft = nodes.length - rows.length;
  return (
    <div class="observe-table">
      <table>
        <thead>
          <tr>
            <th scope="col">{t("cache.column.words")}</th>
            <th scope="col">{t("cache.column.scope")}</th>
            {nodeOrders.map((each) => (
              <SortHeader
                key={each}
                order={each}
                chosen={order.value}
                onChoose={(next) => (order.value = next)}
              />
            ))}
            <th scope="col" class="number">
              {t("cache.column.pages")}
            </th>
            <th scope="col" class="number">
              {t("cache.column.sharers")}
            </th>
            <th scope="col">{t("cache.column.pinned")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((node) => (
            <NodeRow key={node.id} node={node} />
          ))}
        </tbody>
      </table>
      {numLeft > 0 && (
        <button type="button" class="outlined" onClick={() => (numShown.value += rowsAtOnce)}>
          {plural("cache.showMore", Math.min(numLeft, rowsAtOnce))}
        </button>
      )}
    </div>
  );
}

interface SortHeaderProps {
  order: NodeOrder;
  chosen: NodeOrder;
  onChoose: (order: NodeOrder) => void;
}

function SortHeader({ order, chosen, onChoose }: SortHeaderProps) {
  const isChosen = order === chosen;
  // The most recent use comes first, which is the smallest age.
  const direction = order === "lastUse" ? "ascending" : "descending";
  return (
    <th scope="col" class="number" aria-sort={isChosen ? direction : undefined}>
      <button type="button" class="quiet sort" onClick={() => onChoose(order)}>
        {t(`cache.column.${order}`)}
      </button>
    </th>
  );
}

function NodeRow({ node }: { node: WireCacheNode }) {
  return (
    <tr>
      <th scope="row" class="words" dir="auto">
        {node.text === null ? (
          <span class="quiet-words">{t("cache.unreadable")}</span>
        ) : (
          <NodeHead node={node} />
        )}
      </th>
      <td>{ownerOf(node)}</td>
      <td class="number">{formatCount(node.num_tokens)}</td>
      <td class="number">{node.num_hits === null ? notTold : formatCount(node.num_hits)}</td>
      <td class="number">{node.idle_s === null ? notTold : formatAge(node.idle_s)}</td>
      <td class="number">{formatCount(node.num_pages)}</td>
      <td class="number">{formatCount(node.num_sharers)}</td>
      <td>{node.pinned ? t("cache.yes") : ""}</td>
    </tr>
  );
}
