/** Everything that is known of one answer: the one that the reader picked, else the last. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { App } from "../../app";
import { isSettled, type Answer } from "../../chat/answer";
import { namedFigures } from "../../chat/answer_words";
import type { AnswerEntry } from "../../chat/entries";
import { t } from "../../i18n/catalogue";
import { ApiError, getResponse } from "../../wire/api";
import type { WireResponse } from "../../wire/protocol";
import { CopyButton } from "../copy_button";
import { CacheBar } from "../figures";

export function AnswerSection({ app }: { app: App }) {
  const heading = useRef<HTMLElement>(null);
  const answers = app.current.value.entries.value.filter((entry) => entry.kind === "answer");
  const { value: inspected } = app.inspected;
  const entry = answers.find(({ key }) => key === inspected?.key) ?? answers.at(-1);
  useEffect(() => {
    if (inspected === null || heading.current === null) return;
    heading.current.scrollIntoView({ block: "start" });
    heading.current.focus({ preventScroll: true });
  }, [inspected]);
  return (
    <details class="inspector-part" open>
      <summary ref={heading}>
        <h3>{t("inspector.answer")}</h3>
      </summary>
      {entry === undefined ? (
        <p class="inspector-note">{t("inspector.noAnswer")}</p>
      ) : (
        <>
          <p class="inspector-note">
            {t("inspector.answerOf", { index: answers.indexOf(entry) + 1, total: answers.length })}
            {entry !== answers.at(-1) && (
              <button type="button" class="quiet" onClick={() => (app.inspected.value = null)}>
                {t("inspector.last")}
              </button>
            )}
          </p>
          <AnswerFacts key={entry.lastKey} entry={entry} />
        </>
      )}
    </details>
  );
}

function AnswerFacts({ entry }: { entry: AnswerEntry }) {
  const answer = entry.answer.value;
  const response = useResponse(answer);
  const facts = factsOf(answer, response.value.object);
  return (
    <>
      {answer.prompt !== null && <CacheBar prompt={answer.prompt} />}
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd dir="auto">{value}</dd>
          </div>
        ))}
      </dl>
      {response.value.problem !== null && <p class="inspector-note">{response.value.problem}</p>}
      {response.value.object !== null && <Raw response={response.value.object} />}
    </>
  );
}

interface ReadResponse {
  object: WireResponse | null;
  /** Why it could not be read, in a sentence. */
  problem: string | null;
}

/** Return the response object as the server has it, once the answer has ended. */
function useResponse(answer: Answer): ReadonlySignal<ReadResponse> {
  const response = useSignal<ReadResponse>({ object: null, problem: null });
  const { responseId } = answer;
  const isDone = isSettled(answer);
  useEffect(() => {
    if (responseId === null || !isDone) return;
    getResponse(responseId).then(
      (object) => (response.value = { object, problem: null }),
      (error: unknown) => (response.value = { object: null, problem: problemOf(error) }),
    );
  }, [responseId, isDone]);
  return response;
}

function problemOf(error: unknown): string {
  if (error instanceof ApiError && error.status === 404) return t("inspector.rawGone");
  return error instanceof Error ? error.message : String(error);
}

function factsOf(answer: Answer, response: WireResponse | null): [name: string, value: string][] {
  const facts: [string, string | null | undefined][] = [
    ...namedFigures(answer),
    [t("inspector.ending"), endingWords(answer)],
    [t("inspector.model"), response?.model],
    [t("inspector.answerId"), answer.responseId],
    [t("inspector.messageId"), response?.["chatserve:message_id"] ?? answer.itemId],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] != null);
}

function endingWords({ phase }: Answer): string | null {
  switch (phase) {
    case "completed":
    case "cut":
    case "stopped":
    case "failed":
      return t(`inspector.ending.${phase}`);
    default:
      return null;
  }
}

function Raw({ response }: { response: WireResponse }) {
  const text = JSON.stringify(response, null, 2);
  return (
    <details class="raw">
      <summary>{t("inspector.raw")}</summary>
      <CopyButton label={t("inspector.rawCopy")} text={() => text} />
      <pre dir="ltr" tabIndex={0}>
        {text}
      </pre>
    </details>
  );
}
