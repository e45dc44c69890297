import { describe, expect, test } from "vitest";

import { chartOf, roundUp, shapeOf, totalsOf } from "../src/cache/batch_chart";
import type { WireStepInterval } from "../src/wire/cache_snapshot";

const box = { width: 600, height: 100 };

function step(at: number, more: Partial<WireStepInterval> = {}): WireStepInterval {
  return { at, prefill_tokens: 0, decode_tokens: 0, cached_tokens: 0, num_waiting: 0, ...more };
}

describe("the bars of the last minute", () => {
  test("stand where their time was, and older ones are gone", () => {
    const steps = [step(900), step(970, { decode_tokens: 1 }), step(999.5, { decode_tokens: 1 })];

    const { bars } = chartOf(steps, 1_000, box);

    expect(bars.map(({ x }) => x)).toEqual([300, 595]);
  });

  test("are stacked without gaps up to the sum, within the picture", () => {
    const busy = step(990, { prefill_tokens: 60, decode_tokens: 20, cached_tokens: 20 });

    const [bar] = chartOf([busy], 1_000, box).bars;

    expect(bar!.segments).toEqual([
      { series: "prefill", y: 40, height: 60 },
      { series: "decode", y: 20, height: 20 },
      { series: "cached", y: 0, height: 20 },
    ]);
  });

  test("leave out what there was none of", () => {
    const [bar] = chartOf([step(990, { decode_tokens: 4 })], 1_000, box).bars;

    expect(bar!.segments.map(({ series }) => series)).toEqual(["decode"]);
  });

  test("of one series are one shape", () => {
    const steps = [step(970, { decode_tokens: 5 }), step(985, { decode_tokens: 10 }), step(990)];

    const { bars } = chartOf(steps, 1_000, box);

    expect(shapeOf(bars, "decode")).toBe("M300 50h4v50h-4zM450 0h4v100h-4z");
    expect(shapeOf(bars, "prefill")).toBe("");
  });

  test("need no step at all", () => {
    expect(chartOf([], 1_000, box)).toMatchObject({ bars: [], queuePath: "", maxWaiting: 0 });
  });
});

describe("the line of the queue", () => {
  test("is not drawn while nobody waits", () => {
    expect(chartOf([step(990, { decode_tokens: 1 })], 1_000, box).queuePath).toBe("");
  });

  test("goes back to the ground where nothing is told", () => {
    const steps = [step(970, { num_waiting: 2 }), step(980, { num_waiting: 1 })];

    expect(chartOf(steps, 1_000, box).queuePath).toBe(
      "M0 100V100H300V0H305V100H400V50H405V100H600",
    );
  });
});

test("what the last minute did is summed up", () => {
  const steps = [
    step(900, { prefill_tokens: 1_000 }),
    step(980, { prefill_tokens: 40, cached_tokens: 32, num_waiting: 2 }),
    step(990, { decode_tokens: 7, num_waiting: 1 }),
  ];

  expect(totalsOf(steps, 1_000)).toEqual({ prefill: 40, decode: 7, cached: 32, maxWaiting: 2 });
});

test.each([
  [1, 1],
  [3, 5],
  [10, 10],
  [11, 20],
  [640, 1_000],
  [2_001, 5_000],
])("an axis for %i ends at %i", (value, top) => {
  expect(roundUp(value)).toBe(top);
});
