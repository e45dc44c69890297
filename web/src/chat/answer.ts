/**
 * The life of one answer as a pure fold over its events.
 *
 *     sending → queued → prefilling → streaming → completed | stopped | cut | failed
 *
 * Owns every rule about partial messages: an event is applied once and in order (its
 * `sequence_number` follows the last one), a repeated event changes nothing, a missing one raises
 * `hasGap` until a replay fills it, and nothing changes after the end. Knows no socket and no
 * clock; the time of arrival is an argument.
 */

import { t } from "../i18n/catalogue";
import type {
  AnswerEvent,
  GapEvent,
  LifecycleEvent,
  NumberedEvent,
  WireError,
  WireResponse,
  WireTimings,
  WireUsage,
} from "../wire/protocol";

export type Phase =
  "sending" | "queued" | "prefilling" | "streaming" | "completed" | "stopped" | "cut" | "failed";

export interface AnswerError {
  code: string;
  message: string;
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
  /** Known from admission on, before the first token. */
  prompt: PromptTokens | null;
  usage: WireUsage | null;
  timings: WireTimings | null;
  /** When this page sent the message; null when it only follows the answer. */
  sentAtMs: number | null;
  firstTextAtMs: number | null;
  error: AnswerError | null;
}

const blankAnswer: Answer = {
  responseId: null,
  itemId: null,
  parentItemId: null,
  phase: "sending",
  text: "",
  lastSequence: -1,
  hasGap: false,
  isStopping: false,
  queue: null,
  prompt: null,
  usage: null,
  timings: null,
  sentAtMs: null,
  firstTextAtMs: null,
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

/**
 * Return milliseconds to the first text, as seen here, else by the server.
 *
 * The server's own measure comes with the end; it must not replace a figure already shown.
 * A device that sets its clock back meanwhile has seen nothing of use.
 */
export function ttftMs({ sentAtMs, firstTextAtMs, timings }: Answer): number | null {
  const served = timings?.ttft_ms ?? null;
  if (sentAtMs === null || firstTextAtMs === null) return served;
  const seen = firstTextAtMs - sentAtMs;
  return seen < 0 ? served : seen;
}

/** Return the answer after one event that arrived at `atMs`. */
export function reduceAnswer(answer: Answer, event: AnswerEvent, atMs: number): Answer {
  if (isSettled(answer)) return answer;
  switch (event.type) {
    case "chatserve:queue.updated":
      return withQueue(answer, event.position, event.eta_ms ?? null);
    case "chatserve:response.gap":
      return withSnapshot(answer, event, atMs);
    case "error":
      return failAnswer(answer, toAnswerError(event.error));
    default:
      return withNumbered(answer, event, atMs);
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
  return { ...answer, phase: "failed", isStopping: false, hasGap: false, queue: null, error };
}

export function toAnswerError(error: WireError | null | undefined): AnswerError {
  return {
    code: error?.["chatserve:code"] ?? error?.code ?? error?.type ?? "unknown",
    message: error?.message ?? t("answer.noReason"),
  };
}

function withQueue(answer: Answer, position: number, etaMs: number | null): Answer {
  const isWaiting = answer.phase === "sending" || answer.phase === "queued";
  return isWaiting ? { ...answer, phase: "queued", queue: { position, etaMs } } : answer;
}

/**
 * The snapshot stands for all events up to its number. It may be a smaller one than was seen: a
 * store that has lost the newest events makes others under their numbers.
 */
function withSnapshot(answer: Answer, event: GapEvent, atMs: number): Answer {
  const isBlank = event.snapshot === "";
  return {
    ...answer,
    responseId: event.response_id,
    text: event.snapshot,
    phase: isBlank ? answer.phase : "streaming",
    lastSequence: event.to,
    hasGap: false,
    firstTextAtMs: answer.firstTextAtMs ?? (isBlank ? null : atMs),
  };
}

function withNumbered(answer: Answer, event: NumberedEvent, atMs: number): Answer {
  if (typeof event.sequence_number !== "number") return answer;
  if (event.sequence_number <= answer.lastSequence) return answer;
  if (event.sequence_number > answer.lastSequence + 1) {
    return answer.hasGap ? answer : { ...answer, hasGap: true };
  }
  const next = { ...answer, lastSequence: event.sequence_number, hasGap: false };
  return { ...next, ...changesOf(next, event, atMs) };
}

function changesOf(answer: Answer, event: NumberedEvent, atMs: number): Partial<Answer> {
  switch (event.type) {
    case "response.created":
      return onCreated(event.response);
    case "response.queued":
      return { phase: "queued" };
    case "response.in_progress":
      return onInProgress(event);
    case "response.output_text.delta":
      return onText(answer, answer.text + event.delta, atMs);
    case "response.output_text.done":
      return onText(answer, event.text, atMs);
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
  return { phase: "prefilling", queue: null, prompt: isKnown ? { total, cached } : null };
}

/** Return the prompt's part of a usage object. */
export function promptOf(usage: WireUsage): PromptTokens {
  return { total: usage.input_tokens, cached: usage.input_tokens_details.cached_tokens };
}

function onText(answer: Answer, text: string, atMs: number): Partial<Answer> {
  if (text === answer.text) return {};
  return { phase: "streaming", queue: null, text, firstTextAtMs: answer.firstTextAtMs ?? atMs };
}

function onEnd(answer: Answer, response: WireResponse): Partial<Answer> {
  const phase = endPhase(response);
  return {
    phase,
    isStopping: false,
    queue: null,
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
