import { describe, expect, test } from "vitest";

import { followedAnswer, newAnswer, requestStop, storedAnswer, type Answer } from "../src/chat/answer";
import { oversizeWords } from "../src/input/message_size";
import { hashOf, hashOfCache, placeOf } from "../src/router";
import { groupSessions, neighbourOf } from "../src/sessions/session_list";
import { toTitle } from "../src/chat/title";
import {
  canRetry,
  endingWords,
  errorWords,
  figuresInFull,
  isEarly,
  progressWords,
} from "../src/chat/answer_words";
import { formatDuration, formatRate, speak } from "../src/i18n/catalogue";
import german from "../src/i18n/de.json";
import { connectionWords } from "../src/wire/connection_words";
import { timings, usage } from "./events";

const waiting = (position: number, etaMs: number | null): Answer => ({
  ...followedAnswer("resp_1"),
  queue: { position, etaMs },
});

describe("progress", () => {
  test.each<[string, Answer, string | null]>([
    ["sending", newAnswer(0), "sending"],
    ["queued", followedAnswer("resp_1"), "queued"],
    ["next", waiting(0, null), "next in the queue"],
    ["third", waiting(2, 4000), "3rd in the queue, about 4 s"],
    ["twelfth", waiting(11, null), "12th in the queue"],
    ["prefilling", { ...newAnswer(0), phase: "prefilling" }, "reading the prompt"],
    [
      "prefilling a known prompt",
      { ...newAnswer(0), phase: "prefilling", prompt: { total: 2400, cached: 100 } },
      "reading 2,300 tokens",
    ],
    [
      "prefilling a long prompt",
      { ...newAnswer(0), phase: "prefilling", prefill: { computed: 1240, total: 2300 } },
      "reading 1,240 of 2,300 tokens",
    ],
    [
      "computing the prompt again",
      { ...newAnswer(0), phase: "streaming", prefill: { computed: 1240, total: 2300 } },
      "reading 1,240 of 2,300 tokens once more",
    ],
    [
      "another worker takes over",
      { ...newAnswer(0), phase: "streaming", lost: { numWorkers: 1 } },
      "The machine that was answering has stopped; another takes over",
    ],
    [
      "the only worker starts again",
      { ...newAnswer(0), phase: "prefilling", lost: { numWorkers: 0 } },
      "The machine that was answering has stopped; it is being restarted",
    ],
    ["streaming", { ...newAnswer(0), phase: "streaming" }, null],
    ["stopping", requestStop(newAnswer(0)), "stopping"],
  ])("reads right while %s", (_, answer, words) => {
    expect(progressWords(answer, true)).toBe(words);
  });

  test("tells that the connection is waited for", () => {
    expect(progressWords(newAnswer(0), false)).toBe("waiting for the connection");
  });
});

test("a connection tells the seconds to its next try, and why it waits", () => {
  const waiting = { kind: "reconnecting", retryAtMs: 5000, reason: "lost" } as const;
  expect(connectionWords(waiting, 2400)).toBe("reconnecting in 3 s");
  expect(connectionWords(waiting, 5200)).toBe("reconnecting in 1 s");
  expect(connectionWords({ ...waiting, reason: "crowded" }, 0)).toMatch(/^too many .* 5 s$/);
  expect(connectionWords({ ...waiting, reason: "busy" }, 0)).toMatch(/busy, .* 5 s$/);
  expect(connectionWords({ kind: "offline" }, 0)).toBe("offline, reading only");
  expect(connectionWords({ kind: "live", via: "http" }, 0)).toBe("live over HTTP");
});

test("an early end is named, with the number of tokens where it is known", () => {
  expect(endingWords(storedAnswer({ phase: "stopped" }))).toBe("stopped");
  expect(endingWords(storedAnswer({ phase: "cut", usage }))).toBe("cut at 3 tokens");
  expect(endingWords(storedAnswer({ phase: "cut" }))).toBe("cut");
  expect(endingWords(storedAnswer({}))).toBeNull();
});

test("all figures are told in full, and only those that exist", () => {
  const words = figuresInFull(storedAnswer({ prompt: { total: 40, cached: 32 }, usage, timings }));
  const [figures, explanations] = words.split("\n\n");
  expect(figures).toBe(
    "Prompt tokens: 40\nof them cached: 32\nof them computed: 8\nAnswer tokens: 3\nQueue: 2 ms\nPrefill: 30 ms\n" +
      "Time to first token: 32 ms\nBetween tokens (median): 9 ms\nSpeed: 61 tokens/s",
  );
  expect(explanations).toContain("TTFT is the time to first token");
  expect(explanations).toContain("template");
  expect(figuresInFull(storedAnswer({}))).toBe("");
});

test("an error is a sentence, with what to do where that is known", () => {
  expect(errorWords({ code: "no_worker", message: "no engine worker is running" }, 0)).toBe(
    "No engine worker is running. Start an engine, or wait until it has loaded its model.",
  );
  expect(errorWords({ code: "other", message: "What now?" }, 0)).toBe("What now?");
});

test("a message that cannot succeed gets advice and no retry", () => {
  const error = { code: "context_length_exceeded", message: "the prompt has 9000 tokens" };

  expect(canRetry(error)).toBe(false);
  expect(errorWords(error, 0)).toMatch(/Start a branch from an earlier message/);
  expect(canRetry({ code: "queue_full", message: "full" })).toBe(true);
});

test("whoever has sent too much is told when to try again, and nothing of quotas", () => {
  const message = "this tenant is limited to 2 requests per minute, with 0 left";
  const error = { code: "rate_limit_exceeded", message, retryAtMs: 20_000 };

  expect(errorWords(error, 8_500)).toBe(
    "You have sent as much as is allowed for now. Try again in 12 s.",
  );
  expect([isEarly(error, 19_999), isEarly(error, 20_000)]).toEqual([true, false]);
  expect(errorWords(error, 20_000)).toMatch(/You can try again now\.$/);
  expect(canRetry(error)).toBe(true);
});

test("what is more than is ever allowed is not to be tried again", () => {
  const message = "the request may need 9,000, and this tenant is limited to 100 tokens per minute";
  const error = { code: "request_over_limit", message };

  expect(errorWords(error, 0)).not.toContain("tenant");
  expect(canRetry(error)).toBe(false);
});

describe("a message too large for a frame", () => {
  const limit = 2_048 - 512;

  test("is told with its size and the limit", () => {
    expect(oversizeWords("x".repeat(limit - 1), 2_048)).toBe(
      "This message has 1,537 bytes, and the service takes at most 1,536. Shorten it to send it.",
    );
  });

  test.each([
    ["plain letters", "x".repeat(limit - 2), "x"],
    ["letters of many bytes", "é".repeat((limit - 2) / 2), "é"],
    ["line ends, which are escaped", "\n".repeat((limit - 2) / 2), "\n"],
  ])("is found by what goes over the wire: %s", (_, text, more) => {
    expect(oversizeWords(text, 2_048)).toBeNull();
    expect(oversizeWords(text + more, 2_048)).not.toBeNull();
  });

  test("is not guessed before the service has told its limit", () => {
    expect(oversizeWords("x".repeat(9_999), null)).toBeNull();
  });
});

test("durations and rates have as many digits as mean something", () => {
  expect([formatDuration(48.2), formatDuration(1240), formatRate(61.4), formatRate(4.25)]).toEqual([
    "48 ms",
    "1.2 s",
    "61 tokens/s",
    "4.3 tokens/s",
  ]);
});

test("an address names a conversation, a view or a new chat", () => {
  const chat = (sessionId: string | null, itemId: string | null = null) => {
    return { kind: "chat", sessionId, itemId };
  };
  expect(placeOf(hashOf("conv_1"))).toEqual(chat("conv_1"));
  expect(placeOf(hashOf("a/b#c"))).toEqual(chat("a/b#c"));
  expect(placeOf(hashOf("conv_1", "msg_2"))).toEqual(chat("conv_1", "msg_2"));
  expect(placeOf("#/c/%")).toEqual(chat("%"));
  expect(["", "#/", "#/x/1"].map(placeOf)).toEqual([chat(null), chat(null), chat(null)]);
  expect([placeOf(hashOfCache(null)), placeOf("#/operator")]).toEqual([
    { kind: "cache", tenant: null },
    { kind: "operator" },
  ]);
  expect(placeOf(hashOfCache("a & b?"))).toEqual({ kind: "cache", tenant: "a & b?" });
});

test("a title is the first words on one line", () => {
  expect(toTitle("  How do I\n reset it? ")).toBe("How do I reset it?");
  expect(toTitle("word ".repeat(30))).toMatch(/^(word ){10,}word…$/);
  expect(toTitle("x".repeat(100))).toBe(`${"x".repeat(59)}…`);
});

test("a title ends with a whole character", () => {
  expect(toTitle(`${"x".repeat(58)}${"😀".repeat(5)}`)).toBe(`${"x".repeat(58)}…`);
  expect(toTitle("😀".repeat(40))).toBe(`${"😀".repeat(29)}…`);
});

test("the neighbour of a session is the next one, or the one before the last", () => {
  const sessions = ["a", "b", "c"].map((id) => {
    return { id, title: "", created_at: 0, updated_at: 0, active_response_ids: [] };
  });

  expect(["a", "b", "c", "x"].map((id) => neighbourOf(sessions, id))).toEqual([
    "b",
    "c",
    "b",
    null,
  ]);
  expect(neighbourOf(sessions.slice(0, 1), "a")).toBeNull();
});

test("sessions stand under the days they were last used", () => {
  const now = new Date(2026, 4, 20, 9, 0);
  const at = (...when: [number, number, number, number]) => {
    const updated_at = new Date(...when).getTime() / 1000;
    return { id: "c", title: "", created_at: 0, updated_at, active_response_ids: [] };
  };
  const sessions = [
    at(2026, 4, 20, 0),
    at(2026, 4, 19, 23),
    at(2026, 4, 14, 12),
    at(2026, 4, 1, 12),
    at(2025, 4, 1, 12),
  ];

  expect(groupSessions(sessions, now).map(({ name }) => name)).toEqual([
    "Today",
    "Yesterday",
    "Last 7 days",
    "Last 30 days",
    "Earlier",
  ]);
});

test("what went wrong is told in the reader's language, or as the server tells it", async () => {
  const lost = { code: "worker_lost", message: "the worker stopped" };
  await speak("de");
  const own = errorWords(lost, 0);
  const unknown = errorWords({ code: "new_code", message: "a new problem" }, 0);
  await speak("en");

  expect(own).toBe(german["error.reason.worker_lost"]);
  expect(unknown).toBe("A new problem.");
  expect(errorWords(lost, 0)).toBe("The worker stopped.");
});

test("a sentence that begins with the name of a field keeps the name as it is", () => {
  const message = "stop_token_ids: must be whole numbers";

  expect(errorWords({ code: "invalid_value", message }, 0)).toBe(`${message}.`);
});
