/**
 * The life of one answer as a pure fold over its events.
 *
 *     sending → queued → prefilling → streaming → completed | stopped | cut | failed
 *
 * Owns every rule about partial messages: an event is applied once and in order (its
 * `sequence_number` follows the last one), a repeated event changes nothing, a missing one raises
 * `hasGap` until a replay fills it, and nothing changes after the end. What is told between the
 * events is over with the next one. The figures are the server's alone. Knows no socket and no clock.
 */

import { t } from "../i18n/catalogue";
import {
  toRetryAfterMs,
  type AnswerEvent,
  type DeltaEvent,
  type GapEvent,
  type LifecycleEvent,
  type NumberedEvent,
  type PrefillEvent,
  type WireError,
  type WireResponse,
  type WireTimings,
  type WireUsage,
} from "../wire/protocol";

export type Phase =
  "sending" | "queued" | "prefilling" | "streaming" | "completed" | "stopped" | "cut" | "failed";

export interface AnswerError {
  code: string;
  message: string;
  /** Before this time the server will refuse the same again. */
  retryAtMs?: number;
}

/** The tokens of a prompt, and how many of them were in the prefix cache. */
export interface PromptTokens {
  total: number;
  cached: number;
}

export interface Answer {
  /** Null until the server has accepted the turn, and with it stored the user's message. */
  responseId: string | null;
  /** What the server calls this message, and the one that it answers. */
  itemId: string | null;
  parentItemId: string | null;
  phase: Phase;
  text: string;
  /** The number of the last event applied; -1 before the first. */
  lastSequence: number;
  /** An event after `lastSequence` is missing; the answer must be resumed there. */
  hasGap: boolean;
  /** The reader asked for the end and the terminal event has not come yet. */
  isStopping: boolean;
  queue: { position: number; etaMs: number | null } | null;
  /** How far a long prompt is that is computed, maybe again; `total` without what was cached. */
  prefill: { computed: number; total: number } | null;
  /** The worker that had the answer is gone; so many live that can take it over. */
  lost: { numWorkers: number } | null;
  /** Known from admission on, before the first token. */
  prompt: PromptTokens | null;
  usage: WireUsage | null;
  /** As far as they are known: a time is told when it has passed. */
  timings: WireTimings | null;
  /** When this page sent the message; null when it only follows the answer. */
  sentAtMs: number | null;
  error: AnswerError | null;
}

const noUpdates = { queue: null, prefill: null, lost: null };

const noTimings: WireTimings = {
  queue_ms: null,
  prefill_ms: null,
  ttft_ms: null,
  itl_p50_ms: null,
  tok_s: null,
};

const blankAnswer: Answer = {
  responseId: null,
  itemId: null,
  parentItemId: null,
  phase: "sending",
  text: "",
  lastSequence: -1,
  hasGap: false,
  isStopping: false,
  ...noUpdates,
  prompt: null,
  usage: null,
  timings: null,
  sentAtMs: null,
  error: null,
};

/** Return the answer to a message sent now. */
export function newAnswer(sentAtMs: number): Answer {
  return { ...blankAnswer, sentAtMs };
}

/** Return an answer somebody else started, to be read from its first event. */
export function followedAnswer(responseId: string): Answer {
  return { ...blankAnswer, responseId, phase: "queued" };
}

/** Return an answer as it was stored. */
export function storedAnswer(fields: Partial<Answer>): Answer {
  return { ...blankAnswer, phase: "completed", ...fields };
}

export function isSettled(answer: Answer): boolean {
  return ["completed", "stopped", "cut", "failed"].includes(answer.phase);
}

/** Return whether a message of this page has come to nothing: it ended before it was stored. */
export function isUnstored(answer: Answer): boolean {
  return isSettled(answer) && answer.sentAtMs !== null && answer.responseId === null;
}

/** Return the answer after one event, which came at this time by the reader's clock. */
export function reduceAnswer(answer: Answer, event: AnswerEvent, atMs: number): Answer {
  if (isSettled(answer)) return answer;
  switch (event.type) {
    case "chatserve:queue.updated":
      return withQueue(answer, event.position, event.eta_ms ?? null);
    case "chatserve:prefill.updated":
      return withPrefill(answer, event);
    case "chatserve:worker.lost":
      return { ...answer, ...noUpdates, lost: { numWorkers: event.num_workers } };
    case "chatserve:response.gap":
      return withSnapshot(answer, event);
    case "error":
      return failAnswer(answer, refusalOf(event.error, atMs));
    default:
      return withNumbered(answer, event);
  }
}

/** Return the answer with the reader's wish to stop noted. */
export function requestStop(answer: Answer): Answer {
  return isSettled(answer) ? answer : { ...answer, isStopping: true };
}

/** Return the answer ended by the reader before the server knew of it. */
export function stopUnsent(answer: Answer): Answer {
  return { ...answer, phase: "stopped", isStopping: false };
}

export function failAnswer(answer: Answer, error: AnswerError): Answer {
  return { ...answer, phase: "failed", isStopping: false, hasGap: false, ...noUpdates, error };
}

export function toAnswerError(error: WireError | null | undefined): AnswerError {
  return {
    code: error?.["chatserve:code"] ?? error?.code ?? error?.type ?? "unknown",
    message: error?.message ?? t("answer.noReason"),
  };
}

function refusalOf(error: WireError, atMs: number): AnswerError {
  const retryAfterMs = toRetryAfterMs(error.headers?.["retry-after"]);
  return { ...toAnswerError(error), ...(retryAfterMs !== null && { retryAtMs: atMs + retryAfterMs }) };
}

function withQueue(answer: Answer, position: number, etaMs: number | null): Answer {
  const isWaiting = answer.phase === "sending" || answer.phase === "queued";
  return isWaiting ? { ...answer, phase: "queued", queue: { position, etaMs } } : answer;
}

function withPrefill(answer: Answer, event: PrefillEvent): Answer {
  if (answer.phase !== "prefilling" && answer.phase !== "streaming") return answer;
  const total = event.total_tokens - event.cached_tokens;
  return { ...answer, ...noUpdates, prefill: { computed: event.computed_tokens, total } };
}

/**
 * The snapshot stands for all events up to its number. It may be a smaller one than was seen: a
 * store that has lost the newest events makes others under their numbers.
 */
function withSnapshot(answer: Answer, event: GapEvent): Answer {
  const isBlank = event.snapshot === "";
  return {
    ...answer,
    responseId: event.response_id,
    text: event.snapshot,
    phase: isBlank ? answer.phase : "streaming",
    lastSequence: event.to,
    hasGap: false,
    ...noUpdates,
  };
}

function withNumbered(answer: Answer, event: NumberedEvent): Answer {
  if (typeof event.sequence_number !== "number") return answer;
  if (event.sequence_number <= answer.lastSequence) return answer;
  if (event.sequence_number > answer.lastSequence + 1) {
    return withGap(answer, event);
  }
  const next = { ...answer, ...noUpdates, lastSequence: event.sequence_number, hasGap: false };
  return { ...next, ...changesOf(next, event) };
}

/** What tells an answer's name is lost with the first event; each that has the response tells it, too. */
function withGap(answer: Answer, event: NumberedEvent): Answer {
  const isNamed = answer.responseId === null && "response" in event;
  if (answer.hasGap && !isNamed) return answer;
  return { ...answer, ...(isNamed && onCreated(event.response)), hasGap: true };
}

function changesOf(answer: Answer, event: NumberedEvent): Partial<Answer> {
  switch (event.type) {
    case "response.created":
      return onCreated(event.response);
    case "response.queued":
      return { phase: "queued" };
    case "response.in_progress":
      return onInProgress(event);
    case "response.output_text.delta":
      return { ...onText(answer, answer.text + event.delta), ...onFirstToken(answer, event) };
    case "response.output_text.done":
      return onText(answer, event.text);
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      return onEnd(answer, event.response);
    default:
      return {};
  }
}

function onCreated(response: WireResponse): Partial<Answer> {
  return {
    responseId: response.id,
    itemId: response["chatserve:message_id"] ?? null,
    parentItemId: response["chatserve:parent_id"] ?? null,
  };
}

function onInProgress(event: LifecycleEvent): Partial<Answer> {
  const total = event["chatserve:input_tokens"];
  const cached = event["chatserve:cached_tokens"];
  const isKnown = total !== undefined && cached !== undefined;
  const queueMs = event["chatserve:queue_ms"] ?? null;
  return {
    phase: "prefilling",
    prompt: isKnown ? { total, cached } : null,
    timings: queueMs === null ? null : { ...noTimings, queue_ms: queueMs },
  };
}

/** Return the prompt's part of a usage object. */
export function promptOf(usage: WireUsage): PromptTokens {
  return { total: usage.input_tokens, cached: usage.input_tokens_details.cached_tokens };
}

function onText(answer: Answer, text: string): Partial<Answer> {
  return text === answer.text ? {} : { phase: "streaming", text };
}

function onFirstToken({ timings }: Answer, event: DeltaEvent): Partial<Answer> {
  const ttftMs = event["chatserve:ttft_ms"];
  if (ttftMs === undefined) return {};
  const prefillMs = timings?.queue_ms == null ? null : ttftMs - timings.queue_ms;
  return { timings: { ...(timings ?? noTimings), prefill_ms: prefillMs, ttft_ms: ttftMs } };
}

function onEnd(answer: Answer, response: WireResponse): Partial<Answer> {
  const phase = endPhase(response);
  return {
    phase,
    isStopping: false,
    usage: response.usage ?? null,
    timings: response["chatserve:timings"] ?? null,
    prompt: response.usage ? promptOf(response.usage) : answer.prompt,
    error: phase === "failed" ? toAnswerError(response.error) : null,
  };
}

function endPhase(response: WireResponse): Phase {
  switch (response.status) {
    case "completed":
      return "completed";
    case "incomplete":
      return phaseOfIncomplete(response.incomplete_details?.reason);
    default:
      return "failed";
  }
}

/** Return how an answer without its natural end came to it. */
export function phaseOfIncomplete(reason: string | null | undefined): Phase {
  return reason === "max_output_tokens" ? "cut" : "stopped";
}
