/**
 * One answer: its progress in words, its text, how it ended, and its figures.
 *
 * Reads the answer's own signal, so that a streaming answer renders nothing but itself.
 */

import type { Signal } from "@preact/signals";

import { isSettled, type Answer } from "../chat/answer";
import { t } from "../i18n/catalogue";
import { Markdown } from "../markdown/markdown";
import { canRetry, endingWords, errorWords, progressWords } from "../chat/answer_words";
import { CopyButton } from "./copy_button";
import { Figures } from "./figures";

interface AnswerViewProps {
  answer: Signal<Answer>;
  isLive: boolean;
  /** Null where trying again makes no sense: the answer is not the last one. */
  onRetry: (() => void) | null;
}

export function AnswerView({ answer: { value: answer }, isLive, onRetry }: AnswerViewProps) {
  const isDone = isSettled(answer);
  const progress = progressWords(answer, isLive);
  const hasText = answer.text !== "";
  const isWriting = !isDone && isLive;
  return (
    <article
      class={isWriting ? "answer writing" : "answer"}
      aria-label={t("answer.label")}
      aria-busy={!isDone}
      data-phase={answer.phase}
    >
      {hasText && <Markdown text={answer.text} isGrowing={!isDone} />}
      {!isDone && progress !== null && <p class="progress">{progress}</p>}
      {answer.error !== null && <Failure answer={answer} onRetry={onRetry} />}
      <Footer answer={answer} />
    </article>
  );
}

function Footer({ answer }: { answer: Answer }) {
  const ending = endingWords(answer);
  const hasBegun = answer.text !== "" || answer.usage !== null;
  if (!hasBegun && ending === null) return null;
  return (
    <footer>
      <div class="facts">
        {ending !== null && <span class="ending">{ending}</span>}
        {hasBegun && <Figures answer={answer} />}
      </div>
      {isSettled(answer) && answer.text !== "" && (
        <CopyButton label={t("answer.copy")} text={() => answer.text} />
      )}
    </footer>
  );
}

function Failure({ answer, onRetry }: { answer: Answer; onRetry: (() => void) | null }) {
  const { error } = answer;
  if (error === null) return null;
  return (
    <div class="failure" role="group" aria-label={t("answer.error")}>
      <p>{errorWords(error)}</p>
      {onRetry !== null && canRetry(error) && (
        <button type="button" class="outlined" onClick={onRetry}>
          {t("common.retry")}
        </button>
      )}
    </div>
  );
}
