/**
 * Where the nodes of the radix tree stand: from left to right, in columns by depth.
 *
 * Pure: the same snapshot gives the same picture, and a snapshot that differs little gives one
 * that differs little. Siblings stand in the order of the smallest id below them, which neither a
 * new sibling nor a split changes, whichever half of it keeps the id; those that begin alike stand
 * together.
 *
 *     root ─┬─ [A] ──┬─ [B]      a node's extent is what its subtree takes from top to bottom:
 *           │        └─ [C]      its own row, or the extents of its children, whichever is more;
 *           └─ [D]               the smaller of the two is centred in it
 */

import type { WireCacheNode } from "../wire/cache_snapshot";

export const columnWidth = 264;
/** Where the empty prefix stands that all others begin with. */
export const rootX = 0;
const rootWidth = 36;
const rowHeight = 34;
const gap = 6;
const minHeight = 6;
const maxHeight = 160;
const minWidth = 10;
const widthPerSharer = 8;
const maxDrawnSharers = 8;

export interface PlacedNode {
  node: WireCacheNode;
  parent: PlacedNode | null;
  children: PlacedNode[];
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface TreeLayout {
  /** From top to bottom, a parent before its children. */
  nodes: PlacedNode[];
  roots: PlacedNode[];
  width: number;
  height: number;
}

/** Return the height of so many tokens: by their square root, so that long ones fit the picture. */
export function heightOf(numTokens: number): number {
  return Math.min(maxHeight, Math.max(minHeight, 2 * Math.sqrt(numTokens)));
}

/** Return the width that shows so many running requests. */
export function widthOf(numSharers: number): number {
  return minWidth + widthPerSharer * Math.min(numSharers, maxDrawnSharers);
}

export function layoutTree(nodes: readonly WireCacheNode[]): TreeLayout {
  const { placed, roots } = link(nodes);
  sortSiblings(placed, roots);
  const extents = measure(placed);
  const ordered: PlacedNode[] = [];
  const height = stand(roots, 0, extents, ordered);
  const depth = ordered.reduce((deepest, each) => Math.max(deepest, each.depth + 1), 0);
  return { nodes: ordered, roots, width: xOf(depth), height };
}

/** Return the middle of a node, where lines begin and end. */
export function middleOf({ y, height }: PlacedNode): number {
  return y + height / 2;
}

/** A node whose parent was left off the snapshot stands at the root. */
function link(nodes: readonly WireCacheNode[]) {
  const byId = new Map<number, PlacedNode>();
  const roots: PlacedNode[] = [];
  for (const node of nodes) {
    const parent = node.parent === null ? null : (byId.get(node.parent) ?? null);
    const depth = parent === null ? 0 : parent.depth + 1;
    const size = { width: widthOf(node.num_sharers), height: heightOf(node.num_tokens) };
    const each = { node, parent, children: [], depth, x: xOf(depth), y: 0, ...size };
    byId.set(node.id, each);
    (parent === null ? roots : parent.children).push(each);
  }
  return { placed: [...byId.values()], roots };
}

function sortSiblings(placed: readonly PlacedNode[], roots: PlacedNode[]): void {
  const smallest = new Map<PlacedNode, number>();
  const keyOf = (each: PlacedNode) => smallest.get(each) ?? each.node.id;
  for (const each of placed.toReversed()) {
    smallest.set(each, Math.min(each.node.id, ...each.children.map(keyOf)));
  }
  for (const siblings of [roots, ...placed.map(({ children }) => children)]) {
    siblings.sort((a, b) => keyOf(a) - keyOf(b));
    bringTogether(siblings);
  }
}

/** Let those that begin alike follow the first of them. */
function bringTogether(siblings: PlacedNode[]): void {
  const groups = new Map<number, PlacedNode[]>();
  for (const each of siblings) {
    const ids = [each.node.id, each.node.alike?.node_id ?? each.node.id];
    const known = [...new Set(ids.flatMap((id) => groups.get(id) ?? []))];
    const group = [...known, each];
    for (const id of [...ids, ...known.map(({ node }) => node.id)]) groups.set(id, group);
  }
  const together = new Set(siblings.flatMap(({ node }) => groups.get(node.id) ?? []));
  siblings.splice(0, siblings.length, ...together);
}

function measure(placed: readonly PlacedNode[]): Map<PlacedNode, number> {
  const extents = new Map<PlacedNode, number>();
  for (const each of placed.toReversed()) {
    extents.set(each, Math.max(rowOf(each), sumOf(each.children, extents)));
  }
  return extents;
}

/** Let nodes stand below each other from `top` on; return where they end. */
function stand(
  siblings: readonly PlacedNode[],
  top: number,
  extents: Map<PlacedNode, number>,
  ordered: PlacedNode[],
): number {
  let y = top;
  for (const each of siblings) {
    const extent = extents.get(each) ?? 0;
    each.y = y + (extent - each.height) / 2;
    ordered.push(each);
    stand(each.children, y + (extent - sumOf(each.children, extents)) / 2, extents, ordered);
    y += extent;
  }
  return y;
}

function xOf(depth: number): number {
  return rootX + rootWidth + depth * columnWidth;
}

function rowOf({ height }: PlacedNode): number {
  return Math.max(height, rowHeight) + gap;
}

function sumOf(siblings: readonly PlacedNode[], extents: Map<PlacedNode, number>): number {
  return siblings.reduce((sum, each) => sum + (extents.get(each) ?? 0), 0);
}
