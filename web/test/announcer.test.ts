import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { followedAnswer, newAnswer, storedAnswer, type Answer } from "../src/chat/answer";
import { Announcer } from "../src/chat/announcer";
import { usage } from "./events";

let announcer: Announcer;
let nowMs: number;

beforeEach(() => {
  vi.useFakeTimers();
  announcer = new Announcer();
  nowMs = 0;
});

afterEach(() => vi.useRealTimers());

/** Show the states of one answer, one a second; return what was said politely, in order. */
function hear(...states: Partial<Answer>[]): string[] {
  const said = [announcer.polite.value];
  for (const state of states) {
    announcer.show("answer", { ...newAnswer(0), ...state }, nowMs);
    nowMs += 1_000;
    if (announcer.polite.value !== said.at(-1)) said.push(announcer.polite.value);
  }
  return said.slice(1);
}

const writing = (text: string): Partial<Answer> => ({ phase: "streaming", text });

test("beginning and end are told, tokens are not", () => {
  expect(
    hear({ phase: "sending" }, writing("The"), writing("The sea"), { phase: "completed", text: "The **sea**" }),
  ).toEqual(["Answer started", "Answer finished: The sea"]);
});

test("of a long answer the first words are told", () => {
  const said = hear({}, { phase: "completed", text: "word ".repeat(100) });

  expect(said[0]!.length).toBeLessThan(230);
  expect(said[0]).toMatch(/word…$/);
});

test.each([
  ["stopped", { phase: "stopped" }, "Answer stopped"],
  ["cut", { phase: "cut", usage }, "Answer cut at 3 tokens"],
] as const)("an answer that was %s is told of", (_, state, words) => {
  expect(hear({}, state)).toEqual([words]);
});

test("an answer that comes into view is no news", () => {
  announcer.show("one", storedAnswer({ text: "Old" }), 0);
  announcer.show("two", storedAnswer({ text: "Older" }), 0);

  expect(announcer.polite.value).toBe("");
});

describe("in another conversation", () => {
  test("what was said last is over, once it could be heard", () => {
    hear({}, { phase: "stopped" });

    announcer.leave();
    vi.advanceTimersByTime(900);
    const soon = announcer.polite.value;
    vi.advanceTimersByTime(100);

    expect([soon, announcer.polite.value]).toEqual(["Answer stopped", ""]);
  });

  test("what is said there stays", () => {
    hear({}, { phase: "stopped" });

    announcer.leave();
    announcer.show("another", newAnswer(0), nowMs);
    announcer.show("another", { ...newAnswer(0), ...writing("The") }, nowMs);
    vi.advanceTimersByTime(2_000);

    expect(announcer.polite.value).toBe("Answer started");
  });
});

describe("while it is written", () => {
  test("the reader hears of it every few seconds, and of no standstill", () => {
    hear({}, writing("The sea"));
    vi.advanceTimersByTime(7_000);
    const first = announcer.polite.value;
    hear(writing("The sea is"));
    vi.advanceTimersByTime(6_999);

    expect(first).toBe("Still writing, 7 characters so far");
    expect(announcer.polite.value).toBe(first);
    vi.advanceTimersByTime(1);
    expect(announcer.polite.value).toBe("Still writing, 10 characters so far");
  });

  test("and no longer once it has ended", () => {
    hear({}, writing("The sea"), { phase: "stopped" });
    vi.advanceTimersByTime(60_000);

    expect(announcer.polite.value).toBe("Answer stopped");
  });
});

test("places in the queue are told rarely", () => {
  const places = Array.from({ length: 20 }, (_, index) => ({
    ...followedAnswer("resp_1"),
    queue: { position: 20 - index, etaMs: null },
  }));

  expect(hear(...places)).toEqual(["21st in the queue", "11th in the queue"]);
});

test("what went wrong is urgent, and told once", () => {
  const error = { code: "queue_full", message: "the queue is full" };
  const said = hear({}, { phase: "failed", error });

  expect(announcer.urgent.value).toBe("Answer failed. The queue is full. Try again in a moment.");
  expect(said).toEqual([]);
  announcer.show("next", newAnswer(0), nowMs);
  announcer.show("next", { ...newAnswer(0), phase: "streaming", text: "x" }, nowMs);
  expect(announcer.urgent.value).toBe("");
});

test("a lost machine is told once, and again only when that changes", () => {
  const lost = (numWorkers: number) => ({ ...writing("The"), lost: { numWorkers } });

  expect(hear(writing("The"), lost(0), lost(0), lost(1), lost(1))).toEqual([
    "The machine that was answering has stopped; it is being restarted",
    "The machine that was answering has stopped; another takes over",
  ]);
});

test("the progress of a long prompt is shown and not told", () => {
  const read = (computed: number): Partial<Answer> => ({ phase: "prefilling", prefill: { computed, total: 9 } });

  expect(hear(read(1), read(5), read(8))).toEqual([]);
});

test("what went wrong is found in one place once it has been told", () => {
  hear({}, { phase: "failed", error: { code: "queue_full", message: "the queue is full" } });
  vi.advanceTimersByTime(5_000);

  expect(announcer.urgent.value).toBe("");
});
