/** The nodes of the tree as rows of a table, the most of something first, what is not told last. */

import type { WireCacheNode } from "../wire/cache_snapshot";

export const nodeOrders = ["tokens", "hits", "lastUse"] as const;
export type NodeOrder = (typeof nodeOrders)[number];

const rankings: Record<NodeOrder, (node: WireCacheNode) => number> = {
  tokens: ({ num_tokens }) => num_tokens,
  hits: ({ num_hits }) => num_hits ?? -1,
  lastUse: ({ idle_s }) => -(idle_s ?? Infinity),
};

/** Return the nodes in an order; equal ones by id, so that rows keep their places. */
export function inOrder(nodes: readonly WireCacheNode[], order: NodeOrder): WireCacheNode[] {
  const rank = rankings[order];
  return nodes.toSorted((a, b) => {
    const [ofA, ofB] = [rank(a), rank(b)];
    return ofA === ofB ? a.id - b.id : ofB - ofA;
  });
}
