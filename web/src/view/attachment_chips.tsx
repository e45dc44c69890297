/** What is to go with a message: texts that can be looked at or removed. */

import { useSignal } from "@preact/signals";

import { t } from "../i18n/catalogue";
import type { Attachment } from "../input/attachment";
import { AttachmentName } from "./attachment_name";
import { Dialog } from "./dialog";
import { CloseIcon } from "./icons";

interface AttachmentChipsProps {
  attachments: readonly Attachment[];
  onRemove: (attachment: Attachment) => void;
  /** Put the text where the reader writes. */
  onInline?: (attachment: Attachment) => void;
}

export function AttachmentChips({ attachments, onRemove, onInline }: AttachmentChipsProps) {
  const opened = useSignal<Attachment | null>(null);
  const shown = opened.value;
  const close = () => (opened.value = null);
  return (
    <>
      <ul class="chips" aria-label={t("attachment.list")}>
        {attachments.map((attachment) => (
          <li key={attachment.id} class="chip">
            <button
              type="button"
              class="quiet"
              title={t("attachment.open", { name: attachment.name })}
              onClick={() => (opened.value = attachment)}
            >
              <AttachmentName attachment={attachment} />
            </button>
            <button
              type="button"
              class="quiet"
              aria-label={t("attachment.remove", { name: attachment.name })}
              onClick={() => onRemove(attachment)}
            >
              <CloseIcon />
            </button>
          </li>
        ))}
      </ul>
      {shown !== null && (
        <Dialog label={shown.name} class="attachment-dialog" onClose={close}>
          <pre tabIndex={0} dir="auto">
            {shown.text}
          </pre>
          {onInline !== undefined && (
            <button
              type="button"
              class="outlined"
              onClick={() => {
                close();
                onInline(shown);
              }}
            >
              {t("attachment.inline")}
            </button>
          )}
        </Dialog>
      )}
    </>
  );
}
