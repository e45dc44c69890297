/** What the reader said, and what can be done with it: say it otherwise, copy, delete. */

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import type { App } from "../app";
import type { UserEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import {
  newAttachment,
  piecesOf,
  takeApart,
  withAttachments,
  type Attachment,
} from "../input/attachment";
import { AttachmentChips, AttachmentName } from "./attachment_chips";
import { CopyButton } from "./copy_button";
import { DeleteButton } from "./delete_button";
import { useFocusAfterEditing } from "./editing";
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
  if (isEditing) {
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
  const written = useMemo(() => takeApart(entry.text), [entry.text]);
  const attachments = useSignal(written.attachments);
  const remove = (gone: Attachment) => {
    attachments.value = attachments.value.filter(({ id }) => id !== gone.id);
  };
  const attach = (text: string) => {
    attachments.value = [...attachments.value, newAttachment(t("attachment.pasted"), text)];
  };
  return (
    <MessageEditor
      label={t("message.editYours")}
      hint={t("message.editHint")}
      submit={t("composer.send")}
      text={written.text}
      attached={
        attachments.value.length > 0 ? (
          <AttachmentChips attachments={attachments.value} onRemove={remove} />
        ) : undefined
      }
      onLargePaste={attach}
      onSubmit={(text) => void app.rewrite(entry.key, withAttachments(text, attachments.value))}
      onClose={onClose}
    />
  );
}
