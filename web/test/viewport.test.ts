import { describe, expect, test } from "vitest";

import { layoutTree } from "../src/cache/tree_layout";
import { fit, margin, panBy, reveal, seenNodes, zoomAt } from "../src/cache/viewport";
import { treeOf, twoTenants } from "./cache_snapshots";

const box = { width: 800, height: 400 };

describe("a picture is fitted", () => {
  test("as large as it is if there is room, in the middle of the height", () => {
    expect(fit({ width: 300, height: 100 }, box)).toEqual({ x: margin, y: 150, scale: 1 });
  });

  test("never so small that it cannot be read; then its middle is seen", () => {
    const view = fit({ width: 9_000, height: 90_000 }, box);

    expect(view.scale).toBeGreaterThan(0.8);
    expect(view.y + (view.scale * 90_000) / 2).toBe(box.height / 2);
  });
});

test("zooming keeps the point under the pointer, within bounds", () => {
  const view = { x: 30, y: 10, scale: 1 };
  const at = { x: 230, y: 110 };

  const near = zoomAt(view, 2, at);
  const nearest = zoomAt(view, 1e9, at);

  expect((at.x - near.x) / near.scale).toBeCloseTo((at.x - view.x) / view.scale);
  expect((at.y - near.y) / near.scale).toBeCloseTo((at.y - view.y) / view.scale);
  expect(nearest.scale).toBeLessThan(10);
});

test("a node that is seen moves nothing; one outside comes in", () => {
  const layout = layoutTree(treeOf(40, 3));
  const view = fit(layout, box);
  const [first] = layout.nodes;
  const away = panBy(view, -3_000, -3_000);

  const back = reveal(away, first!, box);

  expect(reveal({ x: 100, y: 200 - first!.y, scale: 1 }, first!, box)).toMatchObject({ x: 100 });
  expect(first!.x * back.scale + back.x).toBeGreaterThanOrEqual(margin - 1);
  expect(first!.y * back.scale + back.y).toBeGreaterThanOrEqual(margin - 1);
});

test("only what can be seen is drawn", () => {
  const small = layoutTree(twoTenants());
  const large = layoutTree(treeOf(2_000, 5));
  const around = { width: 256, height: 40 };

  expect(seenNodes(small, fit(small, box), box, around)).toEqual(small.nodes);
  expect(seenNodes(large, fit(large, box), box, around).length).toBeLessThan(100);
  expect(seenNodes(large, { x: 0, y: 9_000, scale: 1 }, box, around)).toEqual([]);
});
