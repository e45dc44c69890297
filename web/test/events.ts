/** Events of one answer as the gateway would number them. */

import { newAnswer, reduceAnswer, type Answer } from "../src/chat/answer";
import type { AnswerEvent, NumberedEvent, WireResponse, WireUsage } from "../src/wire/protocol";

export const usage: WireUsage = {
  input_tokens: 40,
  input_tokens_details: { cached_tokens: 32 },
  output_tokens: 3,
  total_tokens: 43,
};

export const timings = { queue_ms: 2, prefill_ms: 30, ttft_ms: 32, itl_p50_ms: 9, tok_s: 61 };

export function response(fields: Partial<WireResponse> = {}): WireResponse {
  return { id: "resp_1", status: "in_progress", ...fields };
}

export function number(events: Unnumbered[]): NumberedEvent[] {
  return events.map((event, index) => ({ ...event, sequence_number: index }) as NumberedEvent);
}

type Unnumbered = NumberedEvent extends infer E
  ? E extends NumberedEvent
    ? Omit<E, "sequence_number">
    : never
  : never;

export const created: Unnumbered = {
  type: "response.created",
  response: response({
    status: "queued",
    "chatserve:message_id": "msg_answer",
    "chatserve:parent_id": "msg_user",
  }),
};
export const queued: Unnumbered = {
  type: "response.queued",
  response: response({ status: "queued" }),
};
export const inProgress: Unnumbered = {
  type: "response.in_progress",
  response: response(),
  "chatserve:input_tokens": 40,
  "chatserve:cached_tokens": 32,
  "chatserve:queue_ms": timings.queue_ms,
};
export const itemAdded: Unnumbered = { type: "response.output_item.added" };
export const partAdded: Unnumbered = { type: "response.content_part.added" };
export const partDone: Unnumbered = { type: "response.content_part.done" };
export const itemDone: Unnumbered = { type: "response.output_item.done" };

export function delta(text: string): Unnumbered {
  return { type: "response.output_text.delta", delta: text };
}

export function firstDelta(text: string): Unnumbered {
  return { ...delta(text), "chatserve:ttft_ms": timings.ttft_ms } as Unnumbered;
}

export function textDone(text: string): Unnumbered {
  return { type: "response.output_text.done", text };
}

export function ended(fields: Partial<WireResponse> & Pick<WireResponse, "status">): Unnumbered {
  const type = `response.${fields.status}` as "response.completed";
  return { type, response: response({ usage, "chatserve:timings": timings, ...fields }) };
}

/** A whole answer, "Hold the button.", from its creation to its end. */
export const wholeAnswer = number([
  created,
  queued,
  inProgress,
  itemAdded,
  partAdded,
  firstDelta("Hold"),
  delta(" the"),
  delta(" button."),
  textDone("Hold the button."),
  partDone,
  itemDone,
  ended({ status: "completed" }),
]);

/** Fold events into an answer. */
export function fold(events: readonly AnswerEvent[], start: Answer = newAnswer(0)): Answer {
  return events.reduce(reduceAnswer, start);
}
