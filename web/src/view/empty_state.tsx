/** A chat before its first message: what this is, its system prompt, examples to try. */

import "./empty_state.css";

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";

import type { WireModel } from "../wire/protocol";
import { formatCount } from "../words";
import { PlusIcon } from "./icons";
import { StoredSystemPrompt } from "./stored_system_prompt";

const examples = [
  "Explain what a cache is to a ten-year-old.",
  "Write a Python function that reverses a string.",
  "Give me three ideas for a rainy afternoon.",
];

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
        <section class="column empty" aria-label="New chat">
          <h2>Chat with a model that reuses what it has already read.</h2>
          {model !== null && <p class="model-line">{modelLine(model)}</p>}
          <ul class="examples" aria-label="Examples">
            {examples.map((example) => (
              <li key={example}>
                <button type="button" disabled={model === null} onClick={() => onExample(example)}>
                  {example}
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
  return `${model.id}, ${formatCount(model.max_model_len)} tokens of context`;
}

function SystemPromptEditor({ text }: { text: Signal<string> }) {
  const isOpen = useSignal(text.value !== "");
  if (!isOpen.value) {
    return (
      <button type="button" class="quiet add-prompt" onClick={() => (isOpen.value = true)}>
        <PlusIcon /> Add a system prompt
      </button>
    );
  }
  return (
    <label class="prompt-editor">
      <span>System prompt</span>
      <textarea
        rows={3}
        dir="auto"
        placeholder="You are a helpful assistant."
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <small>Chats that begin with the same words share them in the cache.</small>
    </label>
  );
}
