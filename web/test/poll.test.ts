import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Poll } from "../src/observe/poll";
import { problemWords } from "../src/observe/problem_words";
import { ApiError } from "../src/wire/api";

const intervalMs = 500;
const away = new ApiError(503, "store_unavailable", "The store is away.");

let numReads: number;
let answer: () => Promise<number>;
let page: { hidden: boolean };
let onVisibility: (() => void) | null;
let poll: Poll<number>;

beforeEach(() => {
  vi.useFakeTimers({ now: 10_000 });
  numReads = 0;
  answer = async () => numReads;
  onVisibility = null;
  page = { hidden: false };
  const listening = {
    addEventListener: (_type: string, listener: () => void) => (onVisibility = listener),
    removeEventListener: () => (onVisibility = null),
  };
  vi.stubGlobal("document", Object.assign(page, listening));
  poll = new Poll(() => {
    numReads += 1;
    return answer();
  }, intervalMs);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

function setHidden(isHidden: boolean): void {
  page.hidden = isHidden;
  onVisibility?.();
}

test("the first reading comes at once, then two a second", async () => {
  poll.start();
  await pass(0);
  const first = poll.reading.value;
  await pass(5_000);

  expect(first).toEqual({ value: 1, atMs: 10_000 });
  expect(numReads).toBe(11);
  expect(poll.reading.value?.value).toBe(11);
});

test("a slow reply is waited for", async () => {
  answer = () => new Promise((resolve) => setTimeout(() => resolve(1), 2_000));

  poll.start();
  await pass(1_900);
  const whileWaiting = numReads;
  await pass(200);

  expect(whileWaiting).toBe(1);
  expect(numReads).toBe(2);
});

test("nobody looks, nothing is read", async () => {
  poll.start();
  await pass(0);

  setHidden(true);
  await pass(60_000);
  const whileHidden = numReads;
  setHidden(false);
  await pass(0);
  poll.stop();
  await pass(60_000);

  expect(whileHidden).toBe(1);
  expect(numReads).toBe(2);
  expect(onVisibility).toBeNull();
});

test("showing and hiding the tab in a hurry does not read more often", async () => {
  poll.start();
  await pass(0);
  for (let turn = 0; turn < 10; turn += 1) {
    setHidden(true);
    setHidden(false);
    await pass(10);
  }

  expect(numReads).toBe(1);
});

describe("while readings fail", () => {
  beforeEach(() => {
    answer = () => Promise.reject(away);
  });

  test("the last one stays, with the reason, and tries become rarer", async () => {
    answer = async () => 7;
    poll.start();
    await pass(0);
    answer = () => Promise.reject(away);

    await pass(60_000);
    const inFirstMinute = numReads;
    await pass(60_000);

    expect(poll.reading.value?.value).toBe(7);
    expect(poll.problem.value).toBe(away);
    expect(inFirstMinute).toBeLessThan(12);
    expect(numReads - inFirstMinute).toBeLessThanOrEqual(5);
  });

  test("a try can be had at once, and success takes up the old pace", async () => {
    poll.start();
    await pass(20_000);
    const before = numReads;
    answer = async () => 8;

    poll.retry();
    await pass(0);
    const after = numReads;
    await pass(1_000);

    expect(after).toBe(before + 1);
    expect(poll.problem.value).toBeNull();
    expect(numReads).toBe(after + 2);
  });

  test("something else than a refusal is said too", async () => {
    answer = () => Promise.reject(new TypeError("no JSON"));

    poll.start();
    await pass(0);

    expect(poll.problem.value?.message).toContain("no JSON");
  });
});

test.each([
  [403, "Your key may not see this. Ask the operator of this service."],
  [404, "This server does not offer this view. It may be older than the page."],
  [503, "The service cannot tell right now: No."],
  [0, "No."],
])("a refusal with %i is put into words", (status, words) => {
  expect(problemWords(new ApiError(status, "c", "No."))).toBe(words);
});
