/** A new chat before its first message: what this is, a system prompt to set, examples to try. */

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";

import type { WireModel } from "../protocol";
import { formatCount } from "../words";
import { PlusIcon } from "./icons";

const examples = [
  "Explain what a cache is to a ten-year-old.",
  "Write a Python function that reverses a string.",
  "Give me three ideas for a rainy afternoon.",
];

interface EmptyStateProps {
  model: WireModel | null;
  systemPrompt: Signal<string>;
  onExample: (text: string) => void;
}

export function EmptyState({ model, systemPrompt, onExample }: EmptyStateProps) {
  return (
    <div class="transcript-frame">
      <div class="transcript">
        <section class="column empty" aria-label="New chat">
          <h2>Chat with a model that never computes the same beginning twice.</h2>
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
          <SystemPromptEditor text={systemPrompt} />
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
