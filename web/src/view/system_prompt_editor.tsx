/** Where the reader writes what a new chat begins with. */

import "./system_prompt_editor.css";

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { PlusIcon } from "./icons";

export function SystemPromptEditor({ text }: { text: Signal<string> }) {
  const isOpen = useSignal(text.value !== "");
  const area = useRef<HTMLTextAreaElement>(null);
  const wasOpen = useRef(isOpen.value);
  useEffect(() => {
    // Who opens it means to write in it; one that is open already takes the focus from nobody.
    if (isOpen.value && !wasOpen.current) area.current?.focus();
    wasOpen.current = isOpen.value;
  }, [isOpen.value]);
  if (!isOpen.value) {
    return (
      <button type="button" class="quiet add-prompt" onClick={() => (isOpen.value = true)}>
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
