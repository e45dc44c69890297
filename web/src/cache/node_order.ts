/** The nodes of the tree as rows of a table, the most of something first. */

import type { WireCacheNode } from "../wire/cache_snapshot";

export const nodeOrders = ["tokens", "hits", "lastUse"] as const;
export type NodeOrder = (typeof nodeOrders)[number];

const rankings: Record<NodeOrder, (node: WireCacheNode) => number> = {
  tokens: ({ num_tokens }) => num_tokens,
  hits: ({ num_hits }) => num_hits,
  lastUse: ({ idle_s }) => -idle_s,
};

/** Return the nodes in an order; equal ones by id, so that rows keep their places. */
export function inOrder(nodes: readonly WireCacheNode[], order: NodeOrder): WireCacheNode[] {
  const rank = rankings[order];
  return nodes.toSorted((a, b) => rank(b) - rank(a) || a.id - b.id);
}
