/**
 * A message in its editor: what stands there.
 *
 * What is written is kept as a draft from the first change on, so that it is there again whatever
 * closes the editor; a message that says what it said before is none.
 */

import { useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { App } from "../app";
import { takeApart, withAttachments, type Attachment } from "../input/attachment";
import { placeOfEdit } from "../input/places";

export interface EditedMessage {
  readonly text: Signal<string>;
  readonly attachments: Signal<readonly Attachment[]>;
  change(text: string, attachments: readonly Attachment[]): void;
  /** Keep the message although it is as it was: it is about to be sent. */
  submit(): string;
}

/** `said` is the message as it stands in the conversation; one without `takesFiles` is all text. */
export function useEditedMessage(
  app: App,
  key: string,
  said: string,
  takesFiles: boolean,
): EditedMessage {
  const { unsent, drafts } = app;
  const session = app.current.value;
  const place = () => placeOfEdit(session.id.value, session.nameOf(key));
  const first = useMemo(() => {
    if (!unsent.isEmpty(place())) {
      return { text: drafts.of(place()), attachments: unsent.attachmentsOf(place()) };
    }
    return takesFiles ? takeApart(said) : { text: said, attachments: [] };
  }, [key]);
  const text = useSignal(first.text);
  const attachments = useSignal<readonly Attachment[]>(first.attachments);
  const message = () => withAttachments(text.value, attachments.value);
  return {
    text,
    attachments,
    change: (newText, newAttachments) => {
      text.value = newText;
      attachments.value = newAttachments;
      if (message() === said) unsent.clear(place());
      else unsent.put(place(), newText, newAttachments);
    },
    submit: () => {
      unsent.put(place(), text.value, attachments.value);
      unsent.onSubmitted(place(), session.places.placeOf(key));
      return message();
    },
  };
}
