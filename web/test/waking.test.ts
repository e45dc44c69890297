import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { watchWaking } from "../src/waking";

let listeners: Map<string, (event: object) => void>;
let numWoken: number;

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  listeners = new Map();
  const listen = (type: string, listener: (event: object) => void) => listeners.set(type, listener);
  vi.stubGlobal("document", { hidden: false, addEventListener: listen });
  vi.stubGlobal("window", { addEventListener: listen });
  numWoken = 0;
  watchWaking(() => (numWoken += 1));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test.each([
  ["online", {}, 1],
  ["visibilitychange", {}, 1],
  ["pageshow", { persisted: true }, 1],
  ["pageshow", { persisted: false }, 0],
])("%s with %j wakes %i times", (type, event, expected) => {
  listeners.get(type)!(event);

  expect(numWoken).toBe(expected);
});

test("a page that is hidden does not wake", () => {
  Object.assign(document, { hidden: true });

  listeners.get("visibilitychange")!({});

  expect(numWoken).toBe(0);
});

test("a clock that went on while timers stood still tells of a sleep, once", () => {
  vi.advanceTimersByTime(60_000);
  const before = numWoken;

  vi.setSystemTime(3_660_000);
  vi.advanceTimersByTime(60_000);

  expect(before).toBe(0);
  expect(numWoken).toBe(1);
});

test("a clock that is set back is no sleep", () => {
  vi.setSystemTime(-3_600_000);
  vi.advanceTimersByTime(60_000);

  expect(numWoken).toBe(0);
});
