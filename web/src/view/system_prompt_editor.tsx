/** Where the reader writes what a new chat begins with. */

import "./system_prompt_editor.css";

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { PlusIcon } from "./icons";

export function SystemPromptEditor({ text }: { text: Signal<string> }) {
  const isOpened = useSignal(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const hadText = useRef(false);
  // One that has been emptied is still there to write in; the text may also come later, kept.
  hadText.current ||= text.value !== "";
  useEffect(() => {
    // Who opens it means to write in it; one that is open already takes the focus from nobody.
    if (isOpened.value) area.current?.focus();
  }, [isOpened.value]);
  if (!isOpened.value && !hadText.current) {
    return (
      <button type="button" class="quiet add-prompt" onClick={() => (isOpened.value = true)}>
        <PlusIcon /> {t("empty.addPrompt")}
      </button>
    );
  }
  return (
    <label class="prompt-editor">
      <span>{t("session.systemPrompt")}</span>
      <textarea
        ref={area}
        rows={3}
        placeholder={t("empty.promptPlaceholder")}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <small>{t("empty.promptHint")}</small>
    </label>
  );
}
