/**
 * One answer: its progress in words, its text, how it ended, its figures, what can be done with it.
 *
 * Reads the answer's own signal, so that a streaming answer renders nothing but itself.
 */

import { useRef } from "preact/hooks";

import type { App } from "../app";
import { isSettled, type Answer, type AnswerError } from "../chat/answer";
import { canRetry, endingWords, errorWords, isEarly, progressWords } from "../chat/answer_words";
import { wholeText, type AnswerEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { AnswerActions } from "./answer_actions";
import { AnswerRoom } from "./answer_room";
import { AnswerText, useMarkdown } from "./answer_text";
import { BegunEdit } from "./begun_edit";
import { Figures } from "./figures";
import { useFocusAfterEditing } from "./focus";
import { lazyView } from "./lazy_view";
import { useNow } from "./now";
import { askingProps } from "./obstacle";
import { WaitingClock } from "./waiting_clock";

const AnswerEditor = lazyView(async () => (await import("./entry_editors")).AnswerEditor);

interface AnswerViewProps {
  app: App;
  entry: AnswerEntry;
  isLive: boolean;
  /** Only there does it make sense to try again, or to go on. */
  isLast: boolean;
}

export function AnswerView({ app, entry, isLive, isLast }: AnswerViewProps) {
  const edit = useRef<HTMLButtonElement>(null);
  const { editing } = app.current.value;
  const isEditing = editing.value === entry.key;
  useMarkdown();
  const answer = entry.answer.value;
  const text = wholeText(entry);
  const isDone = isSettled(answer);
  const progress = progressWords(answer, isLive);
  const isWriting = !isDone && isLive;
  const waitingSinceMs = isWriting && answer.phase !== "streaming" ? answer.sentAtMs : null;
  useFocusAfterEditing(isEditing, edit);
  if (isEditing) {
    return <AnswerEditor app={app} entry={entry} text={text} onClose={() => (editing.value = null)} />;
  }
  return (
    <article
      class={isWriting ? "answer writing" : "answer"}
      aria-label={t("answer.label")}
      aria-busy={!isDone}
      data-phase={answer.phase}
      data-key={entry.key}
    >
      {text !== "" && <AnswerText text={text} isGrowing={!isDone} />}
      {answer.error !== null && (
        <Failure app={app} error={answer.error} isLast={isLast} />
      )}
      <div class="after">
        {isLast && <AnswerRoom hasVersions={entry.siblings.length > 1} />}
        <div>
          <Footer
            answer={answer}
            hasText={text !== ""}
            onInspect={() => app.inspect(entry.key)}
          />
          {!isDone && progress !== null && (
            <p class="progress">
              {progress}
              {waitingSinceMs !== null && <WaitingClock sinceMs={waitingSinceMs} />}
              {isWriting && <PrefillBar answer={answer} />}
            </p>
          )}
          {isDone && (
            <AnswerActions
              app={app}
              entry={entry}
              isLast={isLast}
              edit={edit}
              onEdit={() => (editing.value = entry.key)}
            />
          )}
        </div>
      </div>
      {isDone && <BegunEdit app={app} messageKey={entry.key} />}
    </article>
  );
}

/** The words beside it say the same; a bar that moves would be read or beeped out at every step. */
function PrefillBar({ answer: { prefill } }: { answer: Answer }) {
  if (prefill === null) return null;
  return <progress aria-hidden="true" value={prefill.computed} max={prefill.total} />;
}

interface FooterProps {
  answer: Answer;
  hasText: boolean;
  onInspect: () => void;
}

function Footer({ answer, hasText, onInspect }: FooterProps) {
  const ending = endingWords(answer);
  const hasBegun = hasText || answer.usage !== null;
  if (!hasBegun && ending === null) return null;
  return (
    <footer class="facts">
      {ending !== null && <span class="ending">{ending}</span>}
      {hasBegun && <Figures answer={answer} onInspect={onInspect} />}
    </footer>
  );
}

interface FailureProps {
  app: App;
  error: AnswerError;
  isLast: boolean;
}

function Failure({ app, error, isLast }: FailureProps) {
  const asking = askingProps(app);
  const nowMs = useNow(isEarly(error, Date.now()));
  return (
    <div class="failure" role="group" aria-label={t("answer.error")}>
      <p>{errorWords(error, nowMs)}</p>
      {isLast && canRetry(error) && (
        <button
          type="button"
          class="outlined"
          {...asking}
          disabled={asking.disabled || isEarly(error, nowMs)}
          onClick={() => void app.retry()}
        >
          {t("common.retry")}
        </button>
      )}
    </div>
  );
}
