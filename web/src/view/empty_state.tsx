/** A chat before its first message: what this is, its system prompt, examples to try. */

import "./empty_state.css";

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";

import type { WireModel } from "../wire/protocol";
import { formatCount, t } from "../i18n/catalogue";
import { PlusIcon } from "./icons";
import { StoredSystemPrompt } from "./stored_system_prompt";

const examples = ["empty.example.1", "empty.example.2", "empty.example.3"] as const;

interface EmptyStateProps {
  model: WireModel | null;
  systemPrompt: Signal<string>;
  /** The session exists already; what it begins with can only be read. */
  isStored: boolean;
  onExample: (text: string) => void;
}

export function EmptyState({ model, systemPrompt, isStored, onExample }: EmptyStateProps) {
  return (
    <div class="transcript-frame">
      <div class="transcript">
        <section class="column empty" aria-label={t("list.newChat")}>
          <h2>{t("empty.headline")}</h2>
          {model !== null && <p class="model-line">{modelLine(model)}</p>}
          <ul class="examples" aria-label={t("empty.examples")}>
            {examples.map((example) => (
              <li key={example}>
                <button type="button" disabled={model === null} onClick={() => onExample(t(example))}>
                  {t(example)}
                </button>
              </li>
            ))}
          </ul>
          {isStored ? (
            <StoredSystemPrompt text={systemPrompt.value} />
          ) : (
            <SystemPromptEditor text={systemPrompt} />
          )}
        </section>
      </div>
    </div>
  );
}

function modelLine(model: WireModel): string {
  if (model.max_model_len === undefined) return model.id;
  return t("empty.context", { model: model.id, count: formatCount(model.max_model_len) });
}

function SystemPromptEditor({ text }: { text: Signal<string> }) {
  const isOpen = useSignal(text.value !== "");
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
        rows={3}
        dir="auto"
        placeholder={t("empty.promptPlaceholder")}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <small>{t("empty.promptHint")}</small>
    </label>
  );
}
