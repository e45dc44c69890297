import { describe, expect, test } from "vitest";

import {
  failAnswer,
  followedAnswer,
  isSettled,
  newAnswer,
  reduceAnswer,
  requestStop,
  type Phase,
} from "../src/chat/answer";
import type { GapEvent, PrefillEvent, QueueEvent, WorkerLostEvent } from "../src/wire/protocol";
import {
  created,
  delta,
  ended,
  fold,
  inProgress,
  number,
  queued,
  timings,
  usage,
  wholeAnswer,
} from "./events";

const end = wholeAnswer.length;

describe("a whole answer", () => {
  test("every prefix has the text of its deltas and the phase of its last event", () => {
    const phases: Phase[] = [
      "sending",
      "sending",
      "queued",
      "prefilling",
      "prefilling",
      "prefilling",
      "streaming",
      "streaming",
      "streaming",
      "streaming",
      "streaming",
      "streaming",
      "completed",
    ];
    const texts = ["", "", "", "", "", "", "Hold", "Hold the"].concat(
      Array<string>(5).fill("Hold the button."),
    );

    const prefixes = phases.map((_, length) => fold(wholeAnswer.slice(0, length)));

    expect(prefixes.map(({ phase }) => phase)).toEqual(phases);
    expect(prefixes.map(({ text }) => text)).toEqual(texts);
  });

  test("its end settles usage, timings and cached tokens", () => {
    const answer = fold(wholeAnswer);

    expect(answer).toMatchObject({ responseId: "resp_1", usage, timings, prompt: { total: 40, cached: 32 } });
  });

  test("cached tokens are known before the first text", () => {
    expect(fold(wholeAnswer.slice(0, 3)).prompt).toEqual({ total: 40, cached: 32 });
  });

  test("its times are told as they pass, and the end changes none", () => {
    const known = wholeAnswer.map((_, index) => fold(wholeAnswer.slice(0, index)).timings);

    expect(known.slice(0, 3)).toEqual([null, null, null]);
    expect(known[3]).toMatchObject({ queue_ms: 2, prefill_ms: null, ttft_ms: null, tok_s: null });
    for (const times of known.slice(6)) {
      expect(times).toMatchObject({ queue_ms: 2, prefill_ms: 30, ttft_ms: 32, tok_s: null });
    }
    expect(fold(wholeAnswer).timings).toEqual(timings);
  });
});

describe("delivery", () => {
  test("repeating any event changes nothing", () => {
    for (let index = 0; index < end; index += 1) {
      const before = fold(wholeAnswer.slice(0, index + 1));

      expect(reduceAnswer(before, wholeAnswer[index]!, 0)).toBe(before);
    }
  });

  test("every event delivered twice gives the same answer as once", () => {
    const once = fold(wholeAnswer);

    const twice = fold(wholeAnswer.flatMap((event) => [event, event]));

    expect(twice).toEqual(once);
  });

  test("leaving out any event but the last stops the text there and raises the gap", () => {
    for (let missing = 0; missing < end - 1; missing += 1) {
      const before = fold(wholeAnswer.slice(0, missing));

      const after = fold(wholeAnswer.filter((_, index) => index !== missing));

      expect(after.hasGap).toBe(true);
      expect(after.lastSequence).toBe(missing - 1);
      expect(after.text).toBe(before.text);
    }
  });

  test("without the first event it is named by the next that has the response, and read from the start", () => {
    const [, ...later] = wholeAnswer;
    const named = fold(later.slice(0, 1));

    expect(named).toMatchObject({ responseId: "resp_1", lastSequence: -1, hasGap: true });
    expect(fold(wholeAnswer, named)).toMatchObject({ phase: "completed", itemId: "msg_answer", hasGap: false });
  });

  test("a replay from the last event fills a gap", () => {
    for (let missing = 0; missing < end - 1; missing += 1) {
      const broken = fold(wholeAnswer.filter((_, index) => index !== missing));

      const healed = fold(wholeAnswer.slice(broken.lastSequence + 1), broken);

      expect(healed).toMatchObject({ phase: "completed", hasGap: false, text: "Hold the button." });
    }
  });

  test("a cut at any place followed by a resume gives the whole text once", () => {
    for (let cut = 0; cut <= end; cut += 1) {
      const before = fold(wholeAnswer.slice(0, cut));

      const after = fold(wholeAnswer.slice(before.lastSequence + 1), before);

      expect(after.text).toBe("Hold the button.");
      expect(after.phase).toBe("completed");
    }
  });

  test("a replay from the very start changes nothing that was shown", () => {
    for (let cut = 0; cut <= end; cut += 1) {
      const after = fold(wholeAnswer, fold(wholeAnswer.slice(0, cut)));

      expect(after.text).toBe("Hold the button.");
      expect(after.phase).toBe("completed");
    }
  });

  test("an answer of somebody else is followed from its first event", () => {
    const answer = fold(wholeAnswer, followedAnswer("resp_1"));

    expect(answer).toMatchObject({ phase: "completed", text: "Hold the button.", timings });
  });

  test("the full text in the done event wins over the deltas", () => {
    const events = number([created, queued, inProgress, delta("Hol"), delta("d")]);
    const done = { type: "response.output_text.done", text: "Hold!", sequence_number: 5 } as const;

    expect(fold([...events, done]).text).toBe("Hold!");
  });
});

describe("a trimmed log", () => {
  const gap = (to: number, snapshot: string): GapEvent => ({
    type: "chatserve:response.gap",
    response_id: "resp_1",
    from: 0,
    to,
    snapshot,
  });

  test("a snapshot replaces the text and the numbering goes on after it", () => {
    const answer = fold([...wholeAnswer.slice(0, 3), gap(6, "Hold the")]);

    const after = fold(wholeAnswer.slice(7), answer);

    expect(answer).toMatchObject({ text: "Hold the", lastSequence: 6, phase: "streaming" });
    expect(after.text).toBe("Hold the button.");
  });

  test("a store that lost the newest events gives their numbers to others", () => {
    const seen = fold(wholeAnswer.slice(0, 8));
    const other = number([created, queued, inProgress, delta("Hold"), delta(" on")]).slice(4);

    const answer = fold([gap(3, "Hold"), ...other], seen);

    expect(answer).toMatchObject({ text: "Hold on", lastSequence: 4, hasGap: false });
  });
});

describe("the queue", () => {
  const update = (position: number): QueueEvent => ({
    type: "chatserve:queue.updated",
    response_id: "resp_1",
    position,
    eta_ms: 4000,
  });

  test("a position is shown while waiting and forgotten when the answer begins", () => {
    const waiting = fold([...number([created, queued]), update(2)]);

    const begun = fold([{ ...number([inProgress])[0]!, sequence_number: 2 }], waiting);

    expect(waiting).toMatchObject({ phase: "queued", queue: { position: 2, etaMs: 4000 } });
    expect(begun).toMatchObject({ phase: "prefilling", queue: null });
  });

  test("a late position does not take a streaming answer back", () => {
    const streaming = fold(wholeAnswer.slice(0, 6));

    expect(fold([update(1)], streaming)).toBe(streaming);
  });
});

describe("a long prompt", () => {
  const update = (computed: number): PrefillEvent => ({
    type: "chatserve:prefill.updated",
    response_id: "resp_1",
    cached_tokens: 100,
    computed_tokens: computed,
    total_tokens: 2400,
  });
  const prefilling = fold(number([created, queued, inProgress]));

  test("is told of until the next event", () => {
    const reading = fold([update(500), update(1240)], prefilling);

    expect(reading.prefill).toEqual({ computed: 1240, total: 2300 });
    expect(fold([wholeAnswer[3]!], reading).prefill).toBeNull();
  });

  test("is told of in the middle of an answer, where it is computed again", () => {
    const streaming = fold(wholeAnswer.slice(0, 6));

    const reading = fold([update(500)], { ...streaming, lost: { numWorkers: 0 } });

    expect(reading).toEqual({ ...streaming, prefill: { computed: 500, total: 2300 } });
  });
});

describe("a lost worker", () => {
  const lost = (numWorkers: number): WorkerLostEvent => ({
    type: "chatserve:worker.lost",
    response_id: "resp_1",
    num_workers: numWorkers,
  });

  test("is told of at any stage, until the next event, and leaves the text alone", () => {
    for (let length = 1; length < end; length += 1) {
      const before = fold(wholeAnswer.slice(0, length));
      const during = fold([lost(0), lost(1)], before);
      const after = fold(wholeAnswer.slice(length), during);

      expect(during).toEqual({ ...before, queue: null, prefill: null, lost: { numWorkers: 1 } });
      expect(after).toEqual(fold(wholeAnswer));
    }
  });

  test("is no news of an answer that has ended", () => {
    const answer = fold(wholeAnswer);

    expect(fold([lost(1)], answer)).toBe(answer);
  });
});

describe("an early end", () => {
  const cancelled = ended({
    status: "incomplete",
    incomplete_details: { reason: "chatserve:cancelled" },
  });

  test.each([
    ["queued", [created, queued]],
    ["prefilling", [created, queued, inProgress]],
    ["streaming", [created, queued, inProgress, delta("Hold")]],
  ])("a cancel while %s keeps what was said and reads stopped", (phase, events) => {
    const running = requestStop(fold(number(events)));
    const stopped = fold(number([...events, cancelled]).slice(-1), running);

    expect(running).toMatchObject({ phase, isStopping: true });
    expect(stopped).toMatchObject({ phase: "stopped", isStopping: false, text: running.text });
  });

  test("a stop asked for after the end changes nothing", () => {
    const answer = fold(wholeAnswer);

    expect(requestStop(answer)).toBe(answer);
  });

  test("the token limit reads cut", () => {
    const limit = { reason: "max_output_tokens" };
    const events = [created, queued, inProgress, delta("Hold")];
    const last = ended({ status: "incomplete", incomplete_details: limit });

    expect(fold(number([...events, last])).phase).toBe("cut");
  });

  test("a failure keeps the text and carries the precise code", () => {
    const error = { code: "server_error", message: "lost", "chatserve:code": "worker_lost" };
    const events = [created, queued, inProgress, delta("Hold")];

    const answer = fold(number([...events, ended({ status: "failed", error })]));

    expect(answer).toMatchObject({ phase: "failed", text: "Hold" });
    expect(answer.error).toEqual({ code: "worker_lost", message: "lost" });
  });

  test("a refused create fails without an id, so that it can be sent again", () => {
    const refusal = { type: "error", error: { code: "queue_full", message: "full" } } as const;

    const answer = fold([refusal]);

    expect(answer).toMatchObject({ phase: "failed", responseId: null });
    expect(answer.error).toEqual({ code: "queue_full", message: "full" });
  });

  test("a refusal that names a time to wait is refused until then", () => {
    const error = { code: "rate_limit_exceeded", message: "no", headers: { "retry-after": "12" } };

    const answer = reduceAnswer(newAnswer(0), { type: "error", error }, 5_000);

    expect(answer.error?.retryAtMs).toBe(17_000);
  });

  test("nothing changes a settled answer", () => {
    const settled = failAnswer(newAnswer(0), { code: "x", message: "y" });

    expect(isSettled(settled)).toBe(true);
    expect(fold(wholeAnswer, settled)).toBe(settled);
  });
});
