import { describe, expect, test } from "vitest";

import { layoutTree, middleOf, type PlacedNode, type TreeLayout } from "../src/cache/tree_layout";
import { stepFrom } from "../src/cache/tree_steps";
import { cacheNode, treeOf, twoTenants } from "./cache_snapshots";

const shapes: [string, ReturnType<typeof treeOf>][] = [
  ["nothing", []],
  ["two tenants", twoTenants()],
  ["a chain", treeOf(200, 1)],
  ["a binary tree", treeOf(511, 2)],
  ["a star", treeOf(300, 299)],
  ["a bounded snapshot", treeOf(2_000, 5)],
];

function byId(layout: TreeLayout, id: number): PlacedNode {
  return layout.nodes.find(({ node }) => node.id === id)!;
}

function orderOf(nodes: Parameters<typeof layoutTree>[0]): number[] {
  return layoutTree(nodes).nodes.map(({ node }) => node.id);
}

describe.each(shapes)("the picture of %s", (_name, nodes) => {
  const layout = layoutTree(nodes);

  test("has every node once, within its bounds", () => {
    expect(layout.nodes.map(({ node }) => node.id).toSorted()).toEqual(
      nodes.map(({ id }) => id).toSorted(),
    );
    for (const { x, y, width, height } of layout.nodes) {
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x + width).toBeLessThanOrEqual(layout.width);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y + height).toBeLessThanOrEqual(layout.height);
    }
  });

  test("has parents left of their children", () => {
    for (const { parent, x } of layout.nodes) {
      if (parent !== null) expect(parent.x + parent.width).toBeLessThan(x);
    }
  });

  test("has no two nodes or labels of a column on each other", () => {
    const labelHeight = 34;
    const lastOfColumn = new Map<number, PlacedNode>();
    for (const lower of layout.nodes) {
      const upper = lastOfColumn.get(lower.depth);
      lastOfColumn.set(lower.depth, lower);
      if (upper === undefined) continue;
      const halves = (Math.max(upper.height, labelHeight) + Math.max(lower.height, labelHeight)) / 2;
      expect(middleOf(lower) - middleOf(upper)).toBeGreaterThanOrEqual(halves);
    }
  });
});

test("more tokens are higher, more sharers wider, both within bounds", () => {
  const [short, long, huge] = [16, 1_024, 1_000_000].map((num_tokens, index) =>
    byId(layoutTree([cacheNode(1, null, { num_tokens, num_sharers: index * 3 })]), 1),
  );

  expect(short!.height).toBeLessThan(long!.height);
  expect(long!.height).toBeLessThan(huge!.height);
  expect(huge!.height).toBeLessThan(200);
  expect(short!.width).toBeLessThan(long!.width);
});

describe("nodes keep their order when", () => {
  const family = [cacheNode(1, null), cacheNode(5, 1), cacheNode(9, 1)];

  test("the snapshot tells them in another one", () => {
    expect(orderOf([family[0]!, family[2]!, family[1]!])).toEqual([1, 5, 9]);
  });

  test("a sibling comes", () => {
    expect(orderOf([...family, cacheNode(12, 1)])).toEqual([1, 5, 9, 12]);
  });

  test("one is split and the upper half is new", () => {
    const split = [cacheNode(1, null), cacheNode(12, 1), cacheNode(5, 12), cacheNode(9, 1)];

    expect(orderOf(split)).toEqual([1, 12, 5, 9]);
  });

  test("one is split and the lower half is new", () => {
    expect(orderOf([...family, cacheNode(12, 5)])).toEqual([1, 5, 12, 9]);
  });
});

test("what is below a change stands where it stood in its own subtree", () => {
  const before = layoutTree(twoTenants());
  const after = layoutTree([...twoTenants(), cacheNode(6, 3, { num_tokens: 16 })]);

  expect(byId(after, 4)).toMatchObject({ x: byId(before, 4).x, y: byId(before, 4).y });
});

test("a node whose parent was left off stands in the first column", () => {
  const layout = layoutTree([cacheNode(1, null), cacheNode(8, 7)]);

  expect(byId(layout, 8)).toMatchObject({ depth: 0, parent: null });
});

test.each([
  ["ArrowLeft", 4, 2],
  ["ArrowLeft", 1, null],
  ["ArrowRight", 1, 2],
  ["ArrowRight", 4, null],
  ["ArrowDown", 4, 5],
  ["ArrowUp", 3, 2],
  ["ArrowDown", 3, null],
  ["Enter", 1, null],
])("%s leads from node %i to %s", (key, from, to) => {
  const layout = layoutTree(twoTenants());

  expect(stepFrom(byId(layout, from), key, layout)?.node.id ?? null).toBe(to);
});
