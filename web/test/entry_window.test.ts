import { expect, test } from "vitest";

import { EntryWindow } from "../src/reading/entry_window";

/** Entries with these numbers. */
const row = (to: number, from = 0) =>
  Array.from({ length: to - from }, (_, index) => ({ key: `entry-${from + index}` }));

test("a short conversation is drawn whole, and stays so while it grows", () => {
  const drawn = new EntryWindow();

  expect([0, 2, 30, 500].map((numEntries) => drawn.startOf(row(numEntries)))).toEqual([0, 0, 0, 0]);
});

test("of a long one the end is drawn, and nothing of it goes when entries come", () => {
  const drawn = new EntryWindow();

  expect(drawn.startOf(row(500))).toBe(496);
  expect(drawn.startOf(row(510))).toBe(496);
});

test("the reader goes back piece by piece, to the first entry", () => {
  const drawn = new EntryWindow();
  const starts = [drawn.startOf(row(100))];
  while (starts.at(-1) !== 0) {
    drawn.extend();
    starts.push(drawn.startOf(row(100)));
  }

  expect(starts).toEqual([96, 86, 76, 66, 56, 46, 36, 26, 16, 6, 0]);
});

test("an entry that is asked for is drawn, with some before it", () => {
  const drawn = new EntryWindow();
  drawn.startOf(row(500));

  drawn.reach(200);

  expect(drawn.startOf(row(500))).toBe(190);
  drawn.reach(499);
  expect(drawn.startOf(row(500))).toBe(190);
});

test("of a shorter branch the end is drawn", () => {
  const drawn = new EntryWindow();
  drawn.startOf(row(500));

  expect(drawn.startOf(row(40))).toBe(36);
  expect(drawn.startOf(row(5))).toBe(1);
});

test("when what comes before arrives, the same entries are drawn, and more can be had", () => {
  const drawn = new EntryWindow();
  const before = drawn.startOf(row(500, 488));

  const after = drawn.startOf(row(500));
  drawn.extend();

  expect([before, after]).toEqual([8, 496]);
  expect(drawn.startOf(row(500))).toBe(486);
});
