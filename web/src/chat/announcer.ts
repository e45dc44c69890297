/**
 * What a reader is told of the answer on the screen without asking, and when.
 *
 * Owns the two texts that assistive technology reads out: a polite one for beginnings, ends, and now
 * and then that it is still going on; an urgent one for what went wrong. Tokens are never announced,
 * and an answer that merely comes into view is no news.
 */

import { signal } from "@preact/signals";

import { plural, t } from "../i18n/catalogue";
import type { Answer, Phase } from "./answer";
import { endingWords, errorWords, progressWords } from "./answer_words";
import { firstWords } from "./title";

const stillWritingMs = 7_000;
const queueMs = 10_000;
/** What went wrong stands where the answer would be, too; once read out it is found only there. */
const urgentMs = 5_000;
/** Words that go sooner may not be read out, or not to their end. */
const politeMs = 1_000;
const maxTextLength = 200;

export class Announcer {
  readonly polite = signal("");
  readonly urgent = signal("");
  #key: string | null = null;
  #phase: Phase | null = null;
  #answer: Answer | null = null;
  #queueToldAtMs = Number.NEGATIVE_INFINITY;
  #lossTold = "";
  #timer: ReturnType<typeof setInterval> | undefined;
  #politeTimer: ReturnType<typeof setTimeout> | undefined;
  #urgentTimer: ReturnType<typeof setTimeout> | undefined;

  /** Take note of the last answer on the screen, as it is now. */
  show(key: string | null, answer: Answer | null, nowMs: number): void {
    const isNews = this.#key === key && this.#phase !== (answer?.phase ?? null);
    if (this.#key !== key) this.#queueToldAtMs = Number.NEGATIVE_INFINITY;
    this.#key = key;
    this.#phase = answer?.phase ?? null;
    this.#answer = answer;
    if (answer === null) return this.rest();
    this.#tellLoss(answer);
    if (answer.phase === "queued") this.#tellQueue(answer, nowMs);
    else if (isNews) this.#tell(answer, nowMs);
    if (answer.phase === "streaming") this.#timer ??= setInterval(() => this.#tellStill(), stillWritingMs);
    else this.rest();
  }

  /** The reader has gone to another conversation: what was said is over, once it has been heard. */
  leave(): void {
    clearTimeout(this.#politeTimer);
    this.#politeTimer = setTimeout(() => (this.polite.value = ""), politeMs);
  }

  /** Say nothing more by itself. */
  rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tell(answer: Answer, nowMs: number): void {
    const { error } = answer;
    clearTimeout(this.#urgentTimer);
    this.#urgentTimer = setTimeout(() => (this.urgent.value = ""), urgentMs);
    this.urgent.value =
      error === null ? "" : t("answer.announce.failed", { reason: errorWords(error, nowMs) });
    const words = announcement(answer);
    if (words !== null) this.#say(words);
  }

  /** Said when the machine is lost, and when another is there to take over. */
  #tellLoss(answer: Answer): void {
    const words = answer.lost === null ? "" : (progressWords(answer, true) ?? "");
    if (words !== "" && words !== this.#lossTold) this.#say(words);
    this.#lossTold = words;
  }

  /** Places in the queue change faster than anybody wants to hear of. */
  #tellQueue(answer: Answer, nowMs: number): void {
    if (answer.queue === null || nowMs - this.#queueToldAtMs < queueMs) return;
    this.#queueToldAtMs = nowMs;
    this.#say(progressWords(answer, true) ?? "");
  }

  /** The length makes the words new each time; an answer that stands still is not repeated. */
  #tellStill(): void {
    const { text = "" } = this.#answer ?? {};
    this.#say(plural("answer.announce.streaming", text.length));
  }

  #say(words: string): void {
    clearTimeout(this.#politeTimer);
    this.polite.value = words;
  }
}

/** Return what is said politely of an answer that has come to a new phase, or null. */
export function announcement(answer: Answer): string | null {
  switch (answer.phase) {
    case "streaming":
      return t("answer.announce.started");
    case "completed":
      return t("answer.announce.completed", { text: firstWords(plainText(answer.text), maxTextLength) });
    case "stopped":
      return t("answer.announce.stopped");
    case "cut":
      return t("answer.announce.cut", { ending: endingWords(answer) ?? "" });
    default:
      return null;
  }
}

/** Return a text without the marks that would be read out one by one. */
function plainText(markdown: string): string {
  return markdown.replace(/^ {0,3}(?:#{1,6} |> |`{3,}.*$|[-*+] )|\*\*|__|`/gm, "");
}
