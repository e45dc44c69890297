import { describe, expect, test } from "vitest";

import { cornerOf, gridOf, pageAt, paintPages, type PageColours } from "../src/cache/page_grid";
import { countPages, kindOf, pageKinds } from "../src/cache/page_states";
import { lineOf, stripOf } from "../src/cache/page_strip";
import { countsInWords, pageWords } from "../src/cache/page_words";
import { cacheWorker } from "./cache_snapshots";

const colours = Object.fromEntries(
  [...pageKinds, "copied"].map((kind, index) => [kind, index + 1]),
) as PageColours;

describe.each([1, 7, 200, 4_096, 65_536, 300_000])("a grid of %i pages", (numPages) => {
  const grid = gridOf(numPages, 900, 260);

  test("has room for all of them and is no wider than it may be", () => {
    expect(grid.columns * grid.rows).toBeGreaterThanOrEqual(numPages);
    expect(grid.columns * grid.cell).toBeLessThanOrEqual(900);
    expect(grid.cell - grid.gap).toBeGreaterThan(0);
  });

  test("finds the page in the middle of its square, and none outside", () => {
    const last = numPages - 1;
    const corner = cornerOf(grid, last);

    expect(pageAt(grid, corner.x + grid.cell / 2, corner.y + grid.cell / 2)).toBe(last);
    expect(pageAt(grid, grid.columns * grid.cell + 1, 1)).toBeNull();
    expect(pageAt(grid, 1, grid.rows * grid.cell + 1)).toBeNull();
  });
});

test.each([256, 512, 4_096])("the squares of %i pages fill most of a wide pane", (numPages) => {
  const grid = gridOf(numPages, 1_300, 260);

  expect(grid.rows * grid.cell).toBeGreaterThan(260 / 2);
  expect(grid.columns * grid.cell).toBeGreaterThan(1_300 / 2);
});

test("every page is painted in its own square with the colour of its kind", () => {
  const { pages } = cacheWorker();
  const grid = gridOf(pages.length, 120, 90);
  const width = grid.columns * grid.cell;
  const pixels = new Uint32Array(width * grid.rows * grid.cell);

  paintPages(pixels, grid, pages, [4], colours);

  const painted = [...pages].map((_, pageId) => {
    const { x, y } = cornerOf(grid, pageId);
    return pixels[y * width + x];
  });
  const { x, y } = cornerOf(grid, 4);
  const middle = Math.floor((grid.cell - grid.gap) / 2);
  expect(painted).toEqual([...pages].map((_, pageId) => colours[kindOf(pages, pageId)]));
  expect(pixels[(y + middle) * width + x + middle]).toBe(colours.copied);
});

test("pages are counted by what they are used for; unknown signs are nobody's business", () => {
  const counts = countPages(cacheWorker({ pages: "2uc.up5??!", copied_pages: [4] }));

  expect(counts).toEqual({
    free: 1,
    single: 2,
    shared2: 1,
    shared3: 0,
    shared5: 1,
    cached: 1,
    pinned: 1,
    hidden: 3,
    copied: 1,
  });
  expect(countsInWords(counts)).toContain("Free or not yours: 3");
  expect(countsInWords(counts)).not.toContain("By 3 or 4");
});

test.each([
  [0, "Page 0: shared by 2 requests"],
  [2, "Page 2: Kept, nobody uses it now"],
  [4, "Page 4: used by 1 request, Copied on write"],
  [7, "Page 7: Free or not yours"],
])("of page %i it is said: %s", (pageId, words) => {
  expect(pageWords(cacheWorker(), pageId)).toBe(words);
});

describe("a request's pages", () => {
  const grid = gridOf(1_000, 600, 200);

  test("stand in logical order, each with its physical square below the strip", () => {
    const strip = stripOf([4, 0, 7], 300, grid, 2);

    expect(strip.boxes.map(({ index, pageId }) => [index, pageId])).toEqual([[0, 4], [1, 0], [2, 7]]);
    for (const { x, y, pageId, target } of strip.boxes) {
      expect(x + strip.side).toBeLessThanOrEqual(300);
      expect(y + strip.side).toBeLessThan(target.y);
      expect(target.x).toBe(cornerOf(grid, pageId).x / 2);
    }
  });

  test("are numbered as long as there is room", () => {
    const many = Array.from({ length: 512 }, (_, index) => index);

    expect(stripOf([4, 0, 7], 300, grid, 1).isNumbered).toBe(true);
    expect(stripOf(many, 300, grid, 1).isNumbered).toBe(false);
  });

  test("are led to by lines from box to square", () => {
    const { boxes, side } = stripOf([4], 300, grid, 1);
    const { target } = boxes[0]!;

    const line = lineOf(boxes[0]!, side);

    expect(line.startsWith(`M${side / 2} ${side}C`)).toBe(true);
    expect(line.endsWith(`${target.x + target.side / 2} ${target.y}`)).toBe(true);
  });
});
