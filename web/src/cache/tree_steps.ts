/** Where an arrow key leads from a node of the tree, as it is drawn. */

import type { PlacedNode, TreeLayout } from "./tree_layout";

/** Return the node to go to, or null where the key leads nowhere. */
export function stepFrom(from: PlacedNode, key: string, layout: TreeLayout): PlacedNode | null {
  if (key === "ArrowLeft") return from.parent;
  if (key === "ArrowRight") return from.children[0] ?? null;
  const column = layout.nodes.filter(({ depth }) => depth === from.depth);
  const index = column.indexOf(from);
  if (key === "ArrowUp") return column[index - 1] ?? null;
  if (key === "ArrowDown") return column[index + 1] ?? null;
  return null;
}
