import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Undo, type Removal } from "../src/undo";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const removal = (words: string, commit: () => Promise<void> = async () => undefined): Removal => ({
  words,
  target: null,
  restore: () => undefined,
  commit,
});
const refused = (words: string) => removal(words, async () => Promise.reject(new Error("no")));
const spied = (words: string) => ({
  ...removal(words),
  restore: vi.fn(() => undefined),
  commit: vi.fn(async () => undefined),
});

test("a removal is final when its time is over", async () => {
  const commit = vi.fn(async () => undefined);
  const undo = new Undo();
  undo.add(removal("gone", commit));
  expect(commit).not.toHaveBeenCalled();

  await vi.advanceTimersByTimeAsync(8_000);

  expect(commit).toHaveBeenCalledOnce();
  expect(undo.offer.value).toBeNull();
});

test("a removal is final as soon as another follows, and only the other can be taken back", () => {
  const [first, second] = [spied("first"), spied("second")];
  const undo = new Undo();

  undo.add(first);
  undo.add(second);
  undo.undo();

  expect(first.commit).toHaveBeenCalledOnce();
  expect(first.restore).not.toHaveBeenCalled();
  expect(second.restore).toHaveBeenCalledOnce();
});

test("what was taken back is never final", async () => {
  const kept = spied("kept");
  const undo = new Undo();
  undo.add(kept);

  undo.undo();
  undo.finish();
  await vi.advanceTimersByTimeAsync(20_000);

  expect(kept.restore).toHaveBeenCalledOnce();
  expect(kept.commit).not.toHaveBeenCalled();
  expect(undo.offer.value).toBeNull();
});

test("what could not be removed is shown again", async () => {
  const refusedOne = { ...refused("stays"), restore: vi.fn() };
  const undo = new Undo();
  undo.add(refusedOne);

  await vi.advanceTimersByTimeAsync(8_000);

  expect(refusedOne.restore).toHaveBeenCalledOnce();
});

test("what went wrong is said for a moment", async () => {
  const undo = new Undo();
  undo.add(refused("gone"));
  undo.finish();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(undo.problem.value).toBe("no");

  await vi.advanceTimersByTimeAsync(8_000);

  expect(undo.problem.value).toBeNull();
});

test("what went wrong is no longer said with the next removal, and its time is its own", async () => {
  const undo = new Undo();
  undo.add(refused("first"));
  undo.finish();
  await vi.advanceTimersByTimeAsync(7_000);

  undo.add(refused("second"));
  expect(undo.problem.value).toBeNull();
  undo.finish();
  await vi.advanceTimersByTimeAsync(2_000);

  expect(undo.problem.value).toBe("no");
});
