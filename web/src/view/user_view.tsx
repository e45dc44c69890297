/** What the reader said, and what can be done with it: say it otherwise, copy, delete. */

import { useSignal } from "@preact/signals";

import type { App } from "../app";
import type { UserEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { CopyButton } from "./copy_button";
import { BinIcon, EditIcon } from "./icons";
import { MessageEditor } from "./message_editor";
import { SiblingSwitch } from "./sibling_switch";

export function UserView({ app, entry }: { app: App; entry: UserEntry }) {
  const isEditing = useSignal(false);
  if (isEditing.value) {
    return (
      <MessageEditor
        label={t("message.editYours")}
        hint={t("message.editHint")}
        submit={t("composer.send")}
        text={entry.text}
        onSubmit={(text) => void app.rewrite(entry.key, text)}
        onClose={() => (isEditing.value = false)}
      />
    );
  }
  return (
    <div class="said" data-key={entry.key}>
      <article class="user" aria-label={t("session.you")} dir="auto">
        {entry.text}
      </article>
      <div class="actions">
        <SiblingSwitch app={app} entry={entry} />
        <button
          type="button"
          class="quiet"
          aria-label={t("message.edit")}
          title={t("message.edit")}
          onClick={() => (isEditing.value = true)}
        >
          <EditIcon />
        </button>
        <CopyButton label={t("message.copy")} text={() => entry.text} />
        <button
          type="button"
          class="quiet"
          aria-label={t("message.delete")}
          title={t("message.delete")}
          onClick={() => app.deleteMessage(entry.key)}
        >
          <BinIcon />
        </button>
      </div>
    </div>
  );
}
