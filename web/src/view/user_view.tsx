/** What the reader said, and what can be done with it: say it otherwise, copy, delete. */

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import type { App } from "../app";
import type { UserEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { piecesOf, type Attachment } from "../input/attachment";
import { AttachmentName } from "./attachment_name";
import { BegunEdit } from "./begun_edit";
import { CopyButton } from "./copy_button";
import { DeleteButton } from "./delete_button";
import { useFocusAfterEditing } from "./focus";
import { EditIcon } from "./icons";
import { lazyView } from "./lazy_view";
import { SiblingSwitch } from "./sibling_switch";

const UserEditor = lazyView(async () => (await import("./entry_editors")).UserEditor);

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
