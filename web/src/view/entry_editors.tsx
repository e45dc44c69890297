/** The editors of what was said, and of what was answered: which words they show, and what they do. */

import type { App } from "../app";
import type { AnswerEntry, UserEntry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { newAttachment, type Attachment } from "../input/attachment";
import { AttachmentChips } from "./attachment_chips";
import { useEditedMessage } from "./editing";
import { MessageEditor } from "./message_editor";
import { askingProps } from "./obstacle";

interface UserEditorProps {
  app: App;
  entry: UserEntry;
  onClose: () => void;
}

export function UserEditor({ app, entry, onClose }: UserEditorProps) {
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
      submitProps={askingProps(app)}
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

interface AnswerEditorProps {
  app: App;
  entry: AnswerEntry;
  text: string;
  onClose: () => void;
}

export function AnswerEditor({ app, entry, text: said, onClose }: AnswerEditorProps) {
  const { text, change, submit } = useEditedMessage(app, entry.key, said, false);
  return (
    <MessageEditor
      label={t("message.editAnswer")}
      hint={t("message.editAnswerHint")}
      submit={t("common.save")}
      text={text.value}
      onChange={(written) => change(written, [])}
      onSubmit={() => void app.rewrite(entry.key, submit())}
      onClose={onClose}
    />
  );
}
