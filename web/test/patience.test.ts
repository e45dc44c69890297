import { expect, test } from "vitest";

import { retryDelayMs } from "../src/wire/patience";

test("a retry waits between half and all of a doubling ceiling of 8 s", () => {
  expect([0, 1, 2, 3, 4, 5].map((attempt) => retryDelayMs(attempt, 0))).toEqual([
    250, 500, 1000, 2000, 4000, 4000,
  ]);
  expect(retryDelayMs(9, 0.999)).toBeLessThanOrEqual(8000);
});
