import { expect, test } from "vitest";

import { EntryWindow } from "../src/reading/entry_window";

test("a short conversation is drawn whole, and stays so while it grows", () => {
  const drawn = new EntryWindow();

  expect([0, 2, 30, 500].map((numEntries) => drawn.startOf(numEntries))).toEqual([0, 0, 0, 0]);
});

test("of a long one the end is drawn, and nothing of it goes when entries come", () => {
  const drawn = new EntryWindow();

  expect(drawn.startOf(500)).toBe(492);
  expect(drawn.startOf(510)).toBe(492);
});

test("the reader goes back piece by piece, to the first entry", () => {
  const drawn = new EntryWindow();
  const starts = [drawn.startOf(100)];
  while (starts.at(-1) !== 0) {
    drawn.extend();
    starts.push(drawn.startOf(100));
  }

  expect(starts).toEqual([92, 62, 32, 2, 0]);
});

test("an entry that is asked for is drawn, with some before it", () => {
  const drawn = new EntryWindow();
  drawn.startOf(500);

  drawn.reach(200);

  expect(drawn.startOf(500)).toBe(170);
  drawn.reach(499);
  expect(drawn.startOf(500)).toBe(170);
});

test("of a shorter branch the end is drawn", () => {
  const drawn = new EntryWindow();
  drawn.startOf(500);

  expect(drawn.startOf(40)).toBe(32);
  expect(drawn.startOf(5)).toBe(0);
});
