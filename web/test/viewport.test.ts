import { describe, expect, test } from "vitest";

import { charactersIn, labelSizeAt, margin, minNamedScale } from "../src/cache/label_size";
import { layoutTree } from "../src/cache/tree_layout";
import { bounded, fit, panBy, reveal, seenNodes, zoomAt } from "../src/cache/viewport";
import { treeOf, twoTenants } from "./cache_snapshots";

const box = { width: 800, height: 400 };

describe("a picture is fitted", () => {
  test("as large as it is if there is room, in the middle of the height", () => {
    expect(fit({ width: 300, height: 100 }, box)).toEqual({ x: margin, y: 150, scale: 1 });
  });

  test("as a whole, if its nodes still have names then", () => {
    const layout = layoutTree(treeOf(17, 16).map((node) => ({ ...node, num_tokens: 64 })));
    const view = fit(layout, { width: 960, height: 480 });

    expect(view.scale).toBeLessThan(0.8);
    expect(view.y).toBeGreaterThanOrEqual(margin);
    expect(view.y + layout.height * view.scale).toBeLessThanOrEqual(480 - margin + 1);
    expect(charactersIn(180, labelSizeAt(view.scale, 960))).toBeGreaterThan(8);
  });

  test("never so small that nothing has a name; then its middle is seen", () => {
    const view = fit({ width: 9_000, height: 90_000 }, box);

    expect(view.scale).toBe(minNamedScale);
    expect(view.y + (view.scale * 90_000) / 2).toBe(box.height / 2);
  });
});

test("zooming keeps the point under the pointer, within bounds", () => {
  const view = { x: 30, y: 10, scale: 1 };
  const at = { x: 230, y: 110 };

  const near = zoomAt(view, 2, at, 0.5);
  const nearest = zoomAt(view, 1e9, at, 0.5);
  const furthest = zoomAt(view, 1e-9, at, 0.5);

  expect((at.x - near.x) / near.scale).toBeCloseTo((at.x - view.x) / view.scale);
  expect((at.y - near.y) / near.scale).toBeCloseTo((at.y - view.y) / view.scale);
  expect(nearest.scale).toBeLessThan(10);
  expect(furthest.scale).toBe(0.5);
});

describe("a picture that was moved", () => {
  const picture = { width: 1_200, height: 900 };

  test("is never smaller than fitted", () => {
    const { scale } = fit(picture, box);

    expect(bounded({ x: 0, y: 0, scale: 0.01 }, picture, box).scale).toBe(scale);
  });

  test.each([
    [-9e9, 9e9],
    [9e9, -9e9],
  ])("by %i and %i still fills its box", (x, y) => {
    const view = bounded({ x, y, scale: 1 }, picture, box);

    expect(view.x).toBeLessThanOrEqual(margin);
    expect(view.y).toBeLessThanOrEqual(margin);
    expect(view.x + picture.width).toBeGreaterThanOrEqual(box.width - margin);
    expect(view.y + picture.height).toBeGreaterThanOrEqual(box.height - margin);
  });

  test("is in its box as a whole, if there is room", () => {
    const small = { width: 100, height: 50 };
    const view = bounded({ x: 5_000, y: -5_000, scale: 1 }, small, box);

    expect(view).toEqual({ x: box.width - margin - 100, y: margin, scale: 1 });
  });

  test("stays where it was put, as long as that is allowed", () => {
    const put = { x: -100, y: -80, scale: 1.2 };

    expect(bounded(put, picture, box)).toEqual(put);
  });
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
