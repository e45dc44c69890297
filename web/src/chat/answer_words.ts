/**
 * What the page says of an answer: its state, its end, its figures and what went wrong.
 *
 * Pure functions from state to text; the words themselves stand in the catalogue.
 */

import { formatCount, formatDuration, formatRate, language, ordinal, plural, t, tryText } from "../i18n/catalogue";
import type { Answer, AnswerError } from "./answer";

/** Return the state of an answer that has no text to speak for it, or null. */
export function progressWords(answer: Answer, isLive: boolean): string | null {
  if (answer.isStopping) return t("progress.stopping");
  if (!isLive) return t("progress.disconnected");
  if (answer.lost !== null) return lostWords(answer.lost);
  switch (answer.phase) {
    case "sending":
      return t("progress.sending");
    case "queued":
      return queueWords(answer);
    case "prefilling":
      return prefillWords(answer);
    case "streaming":
      return answer.prefill && partWords("progress.prefillingAgain", answer.prefill);
    default:
      return null;
  }
}

function lostWords({ numWorkers }: { numWorkers: number }): string {
  return t(numWorkers > 0 ? "progress.takenOver" : "progress.restarted");
}

function partWords(
  key: "progress.prefillingPart" | "progress.prefillingAgain",
  { computed, total }: NonNullable<Answer["prefill"]>,
): string {
  return t(key, { computed: formatCount(computed), total: formatCount(total) });
}

function prefillWords({ prompt, prefill }: Answer): string {
  if (prefill !== null) return partWords("progress.prefillingPart", prefill);
  if (prompt === null) return t("progress.prefilling");
  return plural("progress.prefillingTokens", prompt.total - prompt.cached);
}

/** Return how an answer came to an end other than its own, or null. */
export function endingWords(answer: Answer): string | null {
  if (answer.phase === "stopped") return t("answer.stopped");
  if (answer.phase !== "cut") return null;
  if (answer.usage === null) return t("answer.cut");
  return plural("answer.cutAt", answer.usage.output_tokens);
}

/** Return every figure of an answer that is known, as pairs of name and value. */
export function namedFigures(answer: Answer): [name: string, value: string][] {
  const { prompt, usage, timings } = answer;
  const figures: [string, string | null][] = [
    [t("figures.prompt"), prompt && formatCount(prompt.total)],
    [t("figures.cached"), prompt && formatCount(prompt.cached)],
    [t("figures.computed"), prompt && formatCount(prompt.total - prompt.cached)],
    [t("figures.answerTokens"), usage && formatCount(usage.output_tokens)],
    [t("figures.queue"), durationOrNull(timings?.queue_ms)],
    [t("figures.prefill"), durationOrNull(timings?.prefill_ms)],
    [t("figures.ttftFull"), durationOrNull(timings?.ttft_ms)],
    [t("figures.itl"), durationOrNull(timings?.itl_p50_ms)],
    [t("figures.rateFull"), timings?.tok_s == null ? null : formatRate(timings.tok_s)],
  ];
  return figures.filter((figure): figure is [string, string] => figure[1] !== null);
}

/** Return the figures of an answer, one a line, for the tooltip. */
export function figuresInFull(answer: Answer): string {
  const lines = namedFigures(answer).map(([name, value]) => `${name}: ${value}`);
  const explanations = [t("figures.ttftMeans"), t("figures.promptMeans")];
  return lines.length === 0 ? "" : [...lines, "", ...explanations].join("\n");
}

const hopeless = new Set([
  "context_length_exceeded",
  "body_too_large",
  "conversation_not_found",
  "request_over_limit",
]);

/** Return whether the same message may succeed when it is sent again. */
export function canRetry(error: AnswerError): boolean {
  return !hopeless.has(error.code);
}

/** Return whether it is too early to send the same message again. */
export function isEarly({ retryAtMs = 0 }: AnswerError, nowMs: number): boolean {
  return nowMs < retryAtMs;
}

/** Return what went wrong and, where something is known, what to do about it. */
export function errorWords(error: AnswerError, nowMs: number): string {
  if (error.code === "rate_limit_exceeded") return limitWords(error, nowMs);
  // Which limits there are, and whose, is the operator's business.
  if (error.code === "request_over_limit") return t("error.overLimit");
  const sentence = ownWords(error) ?? toSentence(error.message);
  const whatToDo = tryText(`error.advice.${error.code}`);
  return whatToDo === null ? sentence : `${sentence} ${whatToDo}`;
}

/** The server speaks English, and more precisely: it names the numbers. */
function ownWords({ code }: AnswerError): string | null {
  return language() === "en" ? null : tryText(`error.reason.${code}`);
}

function limitWords(error: AnswerError, nowMs: number): string {
  if (!isEarly(error, nowMs)) return t("error.limitIsOver");
  const seconds = Math.ceil(((error.retryAtMs ?? 0) - nowMs) / 1_000);
  return t("error.limit", { duration: formatDuration(1_000 * seconds) });
}

/** Messages of the server are written to stand in a log line; here they stand alone. */
function toSentence(message: string): string {
  const beginsWithName = /^[\w.[\]]+: /.test(message);
  const text = beginsWithName ? message : message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?。！？]$/.test(text) ? text : `${text}.`;
}

function queueWords({ queue }: Answer): string {
  if (queue === null) return t("progress.queued");
  const { position, etaMs } = queue;
  const place =
    position === 0
      ? t("progress.queuedNext")
      : t("progress.queuedPlace", { ordinal: ordinal(position + 1) });
  if (etaMs === null) return place;
  return t("progress.queuedEta", { place, duration: formatDuration(etaMs) });
}

function durationOrNull(ms: number | null | undefined): string | null {
  return ms == null ? null : formatDuration(ms);
}
