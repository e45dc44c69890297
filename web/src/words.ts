/**
 * What the page says: states, figures and errors in plain words.
 *
 * Pure functions from state to text, so that the wording stands in one place.
 */

import { ttftMs, type Answer, type AnswerError } from "./chat/answer";
import type { ConnectionState } from "./wire/connection";

const integer = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function formatCount(count: number): string {
  return integer.format(count);
}

export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${integer.format(ms)} ms`;
  return `${oneDigit.format(ms / 1_000)} s`;
}

export function formatRate(tokensPerSecond: number): string {
  const format = tokensPerSecond < 10 ? oneDigit : integer;
  return `${format.format(tokensPerSecond)} tokens/s`;
}

export function connectionWords(state: ConnectionState, nowMs: number): string {
  switch (state.kind) {
    case "connecting":
      return "connecting";
    case "live":
      return "live";
    case "offline":
      return "offline, reading only";
    case "refused":
      return `refused: ${state.reason}`;
    case "reconnecting":
      return `reconnecting in ${Math.max(1, Math.ceil((state.retryAtMs - nowMs) / 1_000))} s`;
  }
}

export const lostWords = "The service does not answer. Is it still running?";

/** Return the state of an answer that has no text to speak for it, or null. */
export function progressWords(answer: Answer, isLive: boolean): string | null {
  if (answer.isStopping) return "stopping";
  if (!isLive) return "waiting for the connection";
  switch (answer.phase) {
    case "sending":
      return "sending";
    case "queued":
      return queueWords(answer);
    case "prefilling":
      return prefillWords(answer);
    default:
      return null;
  }
}

function prefillWords({ prompt }: Answer): string {
  if (prompt === null) return "prefilling";
  const computed = prompt.total - prompt.cached;
  return `prefilling ${formatCount(computed)} ${computed === 1 ? "token" : "tokens"}`;
}

/** Return how an answer came to an end other than its own, or null. */
export function endingWords(answer: Answer): string | null {
  if (answer.phase === "stopped") return "stopped";
  if (answer.phase !== "cut") return null;
  return answer.usage === null ? "cut" : `cut at ${formatCount(answer.usage.output_tokens)} tokens`;
}

/** Return what a screen reader is told when an answer changes its phase, or null. */
export function announcement(answer: Answer): string | null {
  switch (answer.phase) {
    case "queued":
      return "Queued";
    case "streaming":
      return "Answer started";
    case "completed":
      return "Answer finished";
    case "stopped":
      return "Answer stopped";
    case "cut":
      return `Answer ${endingWords(answer)}`;
    case "failed":
      return `Answer failed. ${answer.error?.message ?? ""}`;
    default:
      return null;
  }
}

/** Return every figure of an answer, one a line, for the tooltip. */
export function figuresInFull(answer: Answer): string {
  const { prompt, usage, timings } = answer;
  const lines: [string, string | null][] = [
    ["Prompt tokens", prompt && formatCount(prompt.total)],
    ["of them cached", prompt && formatCount(prompt.cached)],
    ["Answer tokens", usage && formatCount(usage.output_tokens)],
    ["Queue", durationOrNull(timings?.queue_ms)],
    ["Prefill", durationOrNull(timings?.prefill_ms)],
    ["Time to first token", durationOrNull(ttftMs(answer))],
    ["Between tokens (median)", durationOrNull(timings?.itl_p50_ms)],
  ];
  const known = lines.flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  return known.length === 0 ? "" : [...known, "", ...explanations].join("\n");
}

const explanations = [
  "TTFT is the time to first token: the wait from sending the message to its first word back.",
  "The prompt is all that the model reads: the conversation so far, the marks that the chat " +
    "template sets around it, and the system prompt, the model's own where you gave none.",
];

const advice: Record<string, string> = {
  context_length_exceeded: "Shorten the message, or start a new chat.",
  body_too_large: "Start a new chat with a shorter system prompt.",
  conversation_not_found: "It may have been deleted elsewhere. Start a new chat.",
  queue_full: "Try again in a moment.",
  no_worker: "Start an engine, or wait until it has loaded its model.",
  store_unavailable: "The store does not answer; try again when it is back.",
  response_already_in_flight: "Another tab is waiting for an answer in this session.",
  not_resumable: "Reload the page to see what was stored of it.",
  unreachable: "Check that the server is running, then try again.",
};

const hopeless = new Set(["context_length_exceeded", "body_too_large", "conversation_not_found"]);

/** Return whether the same message may succeed when it is sent again. */
export function canRetry(error: AnswerError): boolean {
  return !hopeless.has(error.code);
}

/** Return what went wrong and, where something is known, what to do about it. */
export function errorWords(error: AnswerError): string {
  const sentence = toSentence(error.message);
  const whatToDo = advice[error.code];
  return whatToDo === undefined ? sentence : `${sentence} ${whatToDo}`;
}

/** Messages of the server are written to stand in a log line; here they stand alone. */
function toSentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

function queueWords(answer: Answer): string {
  if (answer.queue === null) return "queued";
  const { position, etaMs } = answer.queue;
  const place = position === 0 ? "next in the queue" : `${ordinal(position + 1)} in the queue`;
  return etaMs === null ? place : `${place}, about ${formatDuration(etaMs)}`;
}

function ordinal(number: number): string {
  const suffixes = { one: "st", two: "nd", few: "rd", other: "th" } as Record<string, string>;
  const rule = new Intl.PluralRules("en", { type: "ordinal" }).select(number);
  return `${number}${suffixes[rule] ?? "th"}`;
}

function durationOrNull(ms: number | null | undefined): string | null {
  return ms == null ? null : formatDuration(ms);
}
