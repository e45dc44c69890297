import { describe, expect, test } from "vitest";

import { drawnPages, pageAtPlace, placesOf } from "../src/cache/drawn_pages";
import { cornerOf, gridOf, paintPages, placeAt, type PageColours } from "../src/cache/page_grid";
import { countPages, kindOf, kindsFor, pageKinds } from "../src/cache/page_states";
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

  test("finds the place in the middle of its square, and none outside", () => {
    const last = numPages - 1;
    const corner = cornerOf(grid, last);

    expect(placeAt(grid, corner.x + grid.cell / 2, corner.y + grid.cell / 2)).toBe(last);
    expect(placeAt(grid, grid.columns * grid.cell + 1, 1)).toBeNull();
    expect(placeAt(grid, 1, grid.rows * grid.cell + 1)).toBeNull();
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
  const drawn = drawnPages(cacheWorker(), 600, 200, 1);
  const { grid } = drawn;

  test("stand in logical order, each with its physical square below the strip", () => {
    const strip = stripOf([4, 0, 7], 300, drawn, 2);

    expect(strip.boxes.map(({ index, pageId }) => [index, pageId])).toEqual([[0, 4], [1, 0], [2, 7]]);
    for (const { x, y, pageId, target } of strip.boxes) {
      expect(x + strip.side).toBeLessThanOrEqual(300);
      expect(y + strip.side).toBeLessThan(target.y);
      expect(target.x).toBe(cornerOf(grid, pageId).x / 2);
    }
  });

  test("are numbered as long as there is room", () => {
    const many = Array.from({ length: 512 }, (_, index) => index);

    expect(stripOf([4, 0, 7], 300, drawn, 1).isNumbered).toBe(true);
    expect(stripOf(many, 300, drawn, 1).isNumbered).toBe(false);
  });

  test("are led to by lines from box to square", () => {
    const { boxes, side } = stripOf([4], 300, drawn, 1);
    const { target } = boxes[0]!;

    const line = lineOf(boxes[0]!, side);

    expect(line.startsWith(`M${side / 2} ${side}C`)).toBe(true);
    expect(line.endsWith(`${target.x + target.side / 2} ${target.y}`)).toBe(true);
  });
});

describe("of a pool too large for squares that can be pointed at", () => {
  const pages = `${".".repeat(9_000)}u2${".".repeat(8_000)}c`;
  const worker = cacheWorker({ pages, num_pages: pages.length, copied_pages: [9_001] });
  const drawn = drawnPages(worker, 900, 260, 1);

  test("only the pages in use are drawn, and the rest is a number", () => {
    expect(drawn.states).toBe("u2c");
    expect(drawn.numLeft).toBe(17_000);
    expect(drawn.grid.cell).toBeGreaterThanOrEqual(10);
  });

  test("a square is that of its page, and the other way round", () => {
    expect([0, 1, 2, 3].map((place) => pageAtPlace(drawn, place))).toEqual([
      9_000,
      9_001,
      17_002,
      null,
    ]);
    expect(placesOf(drawn, [17_002, 5, 9_000])).toEqual([2, 0]);
  });

  test("a request's lines lead to the squares of its pages", () => {
    const { boxes } = stripOf([17_002, 9_000], 300, drawn, 1);

    expect(boxes.map(({ target }) => target.x)).toEqual([
      cornerOf(drawn.grid, 2).x,
      cornerOf(drawn.grid, 0).x,
    ]);
  });
});

test("of a small pool every page is drawn, in its place", () => {
  const drawn = drawnPages(cacheWorker(), 900, 260, 2);

  expect(drawn.numLeft).toBe(0);
  expect(placesOf(drawn, [4, 9])).toEqual([4, 9]);
  expect(pageAtPlace(drawn, 7)).toBe(7);
});

test("who sees all is told what is free, a member only what may be", () => {
  expect(kindsFor("all")).not.toContain("hidden");
  expect(kindsFor("tenant")).not.toContain("free");
  expect(kindsFor("user")).toContain("hidden");
});
