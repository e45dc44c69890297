import { signal } from "@preact/signals";
import { renderToString } from "preact-render-to-string";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { failAnswer, followedAnswer, newAnswer, storedAnswer, type Answer, type AnswerError } from "../src/chat/answer";
import type { AnswerEntry } from "../src/chat/entries";
import type { App } from "../src/app";
import { t } from "../src/i18n/catalogue";
import { AnswerView } from "../src/view/answer_view";

const nowMs = Date.UTC(2026, 2, 7);

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: nowMs }));
afterEach(() => void vi.useRealTimers());

const session = {
  id: signal("conv_1"),
  editing: signal(null),
  running: signal(null),
  seenAtMs: signal(null),
  nameOf: (key: string) => key,
};
const connection = { state: signal({ kind: "live" }), isLost: signal(false) };
const app = {
  current: signal(session),
  connection,
  offer: { problem: signal(null) },
  next: { problem: signal(null) },
  unsent: { isEmpty: () => true },
} as unknown as App;

function entryOf(answer: Answer): AnswerEntry {
  const key = "answer-1";
  return { kind: "answer", key, lastKey: key, siblings: [key], before: [], answer: signal(answer) };
}

function render(answer: Answer, isLive = true): string {
  return renderToString(
    <AnswerView app={app} entry={entryOf(answer)} isLive={isLive} isLast={true} />,
  );
}

describe("a failed answer", () => {
  test.each([
    ["queue_full", true],
    ["context_length_exceeded", false],
    ["body_too_large", false],
    ["conversation_not_found", false],
  ])("after %s offers Retry only where it can help", (code, isOffered) => {
    const html = render(failAnswer(newAnswer(0), { code, message: "no" }));

    expect(html.includes("Retry")).toBe(isOffered);
  });
});

test("Retry waits for the time from which it can help", () => {
  const waiting = { code: "rate_limit_exceeded", message: "no", retryAtMs: nowMs + 12_000 };
  const over = { ...waiting, retryAtMs: nowMs };
  const retryOf = (error: AnswerError) => {
    return /<button[^>]*>Retry/.exec(render(failAnswer(newAnswer(0), error)))?.[0];
  };

  expect(retryOf(waiting)).toContain("disabled");
  expect(retryOf(over)).not.toContain("disabled");
});

test.each([
  ["Retry", failAnswer(newAnswer(0), { code: "queue_full", message: "no" })],
  ["Regenerate", storedAnswer({ text: "The sea" })],
  ["Continue", storedAnswer({ phase: "cut", text: "The sea" })],
])("%s is out of use as long as nothing can be sent, and says why", (name, answer) => {
  const buttonOf = () => new RegExp(`<button[^>]*>(<svg.*?</svg>)?\\s*${name}`).exec(render(answer))![0];
  const before = buttonOf();
  connection.isLost.value = true;
  const after = buttonOf();
  connection.isLost.value = false;

  expect(before).not.toContain("disabled");
  expect(after).toMatch(/disabled(?=.*aria-describedby="obstacle")/);
  expect(after).toContain(t("connection.lost"));
});

test("only a live connection makes a running answer look like being written", () => {
  const answer: Answer = { ...newAnswer(0), phase: "streaming", text: "The sea" };

  expect(render(answer, true)).toContain('class="answer writing"');
  expect(render(answer, false)).toContain('class="answer"');
  expect(render(answer, false)).toContain("waiting for the connection");
});

describe("a long prompt", () => {
  const answer: Answer = { ...newAnswer(nowMs), phase: "prefilling", prefill: { computed: 1240, total: 2300 } };

  test("has a bar that is not read out beside its words", () => {
    expect(render(answer)).toContain(
      'reading 1,240 of 2,300 tokens<progress aria-hidden="true" value="1240" max="2300">',
    );
  });

  test("has none while nobody knows how far it is", () => {
    expect(render(answer, false)).not.toContain("<progress");
    expect(render({ ...answer, isStopping: true, prefill: null })).not.toContain("<progress");
  });
});

describe("the time that the reader waits", () => {
  const sent = (agoMs: number) => newAnswer(nowMs - agoMs);

  test.each([
    ["sent", {}],
    ["queued", { phase: "queued" }],
    ["read", { phase: "prefilling" }],
    ["lost", { phase: "prefilling", lost: { numWorkers: 1 } }],
  ] as const)("for an answer that is %s is shown, and not read out", (_, state) => {
    expect(render({ ...sent(3_400), ...state })).toContain('<span aria-hidden="true">, 3 s</span>');
  });

  test.each([
    ["before it is long", sent(1_900)],
    ["after the first token", { ...sent(3_400), phase: "streaming", lost: { numWorkers: 1 } }],
    ["where it is not known", followedAnswer("resp_1")],
    ["after the end", { ...sent(3_400), phase: "stopped" }],
  ] as const)("is not shown %s", (_, answer) => {
    expect(render(answer)).not.toMatch(/, \S+ s</);
  });
});

test("a lost machine is told of below the text that there is", () => {
  const html = render({ ...newAnswer(0), phase: "streaming", text: "The sea", lost: { numWorkers: 1 } });

  expect(html.indexOf("another takes over")).toBeGreaterThan(html.indexOf("The sea"));
});
