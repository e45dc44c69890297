/** What can be done with an answer that has ended. */

import type { RefObject } from "preact";

import type { App } from "../app";
import { isUnstored } from "../chat/answer";
import { wholeText, type AnswerEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { CopyButton } from "./copy_button";
import { DeleteButton } from "./delete_button";
import { focusComposer } from "./focus";
import { ContinueIcon, EditIcon, RegenerateIcon } from "./icons";
import { askingProps } from "./obstacle";
import { SiblingSwitch } from "./sibling_switch";

interface AnswerActionsProps {
  app: App;
  entry: AnswerEntry;
  isLast: boolean;
  edit: RefObject<HTMLButtonElement | null>;
  onEdit: () => void;
}

export function AnswerActions({ app, entry, isLast, edit, onEdit }: AnswerActionsProps) {
  const answer = entry.answer.value;
  const hasText = wholeText(entry) !== "";
  const canContinue = isLast && hasText && (answer.phase === "cut" || answer.phase === "stopped");
  const asking = askingProps(app);
  if (isUnstored(answer)) {
    return (
      <div class="actions">
        <SiblingSwitch app={app} entry={entry} />
      </div>
    );
  }
  return (
    <div class="actions">
      <SiblingSwitch app={app} entry={entry} />
      {canContinue && (
        <button
          type="button"
          class="quiet"
          {...asking}
          onClick={() => {
            void app.continueAnswer(entry.lastKey);
            focusComposer();
          }}
        >
          <ContinueIcon /> {t("message.continue")}
        </button>
      )}
      <button
        type="button"
        class="quiet"
        {...asking}
        onClick={() => {
          void app.regenerate(entry.key);
          focusComposer();
        }}
      >
        <RegenerateIcon /> {t("message.regenerate")}
      </button>
      {hasText && <CopyButton label={t("answer.copy")} text={() => wholeText(entry)} />}
      {hasText && (
        <button
          type="button"
          class="quiet"
          aria-label={t("message.edit")}
          title={t("message.edit")}
          ref={edit}
          onClick={onEdit}
        >
          <EditIcon />
        </button>
      )}
      <DeleteButton app={app} messageKey={entry.key} />
    </div>
  );
}
