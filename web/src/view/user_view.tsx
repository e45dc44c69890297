/** What the reader said, and what can be done with it: say it otherwise, copy, delete. */

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import type { App } from "../app";
import type { UserEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { newAttachment, piecesOf, type Attachment } from "../input/attachment";
import { AttachmentChips, AttachmentName } from "./attachment_chips";
import { BegunEdit } from "./begun_edit";
import { CopyButton } from "./copy_button";
import { DeleteButton } from "./delete_button";
import { useEditedMessage, useFocusAfterEditing } from "./editing";
import { EditIcon } from "./icons";
import { MessageEditor } from "./message_editor";
import { SiblingSwitch } from "./sibling_switch";

interface UserViewProps {
  app: App;
  entry: UserEntry;
  /** Something in the message is about to be unfolded. */
  onUnfold: () => void;
}

export function UserView({ app, entry, onUnfold }: UserViewProps) {
  const edit = useRef<HTMLButtonElement>(null);
  const { editing } = app.current.value;
  const isEditing = editing.value === entry.key;
  const pieces = useMemo(() => piecesOf(entry.text), [entry.text]);
  useFocusAfterEditing(isEditing, edit);
  if (isEditing && !app.unsent.isLoading.value) {
    return <UserEditor app={app} entry={entry} onClose={() => (editing.value = null)} />;
  }
  return (
    <div class="said" data-key={entry.key}>
      <article class="user" aria-label={t("session.you")} dir="auto">
        {pieces.map((piece, index) =>
          typeof piece === "string" ? (
            <div key={index} dir="auto">
              {piece}
            </div>
          ) : (
            <Attached key={index} attachment={piece} onUnfold={onUnfold} />
          ),
        )}
      </article>
      <div class="actions">
        <SiblingSwitch app={app} entry={entry} />
        <button
          type="button"
          class="quiet"
          ref={edit}
          aria-label={t("message.edit")}
          title={t("message.edit")}
          onClick={() => (editing.value = entry.key)}
        >
          <EditIcon />
        </button>
        <CopyButton label={t("message.copy")} text={() => entry.text} />
        <DeleteButton app={app} messageKey={entry.key} />
      </div>
      <BegunEdit app={app} messageKey={entry.key} />
    </div>
  );
}

/** A text that came with the message; it is not laid out before somebody wants to read it. */
function Attached({ attachment, onUnfold }: { attachment: Attachment; onUnfold: () => void }) {
  const isOpen = useSignal(false);
  return (
    <details class="attached" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary onClick={onUnfold}>
        <AttachmentName attachment={attachment} />
      </summary>
      {isOpen.value && (
        <pre tabIndex={0} dir="auto">
          {attachment.text}
        </pre>
      )}
    </details>
  );
}

interface UserEditorProps {
  app: App;
  entry: UserEntry;
  onClose: () => void;
}

function UserEditor({ app, entry, onClose }: UserEditorProps) {
  const { text, attachments, change, submit } = useEditedMessage(app, entry.key, entry.text, true);
  const remove = (gone: Attachment) =>
    change(text.value, attachments.value.filter(({ id }) => id !== gone.id));
  const attach = (pasted: string) => {
    const attachment = newAttachment(t("attachment.pasted"), pasted);
    change(text.value, [...attachments.value, attachment]);
  };
  return (
    <MessageEditor
      label={t("message.editYours")}
      hint={t("message.editHint")}
      submit={t("composer.send")}
      text={text.value}
      attached={
        attachments.value.length > 0 ? (
          <AttachmentChips attachments={attachments.value} onRemove={remove} />
        ) : undefined
      }
      onChange={(written) => change(written, attachments.value)}
      onLargePaste={attach}
      onSubmit={() => void app.rewrite(entry.key, submit())}
      onClose={onClose}
    />
  );
}
