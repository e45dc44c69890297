/** A chat before its first message: what this is, what it begins with, examples to try. */

import "./empty_state.css";

import type { App } from "../app";
import type { OpenSession } from "../chat/open_session";
import { t } from "../i18n/catalogue";
import { lazyView } from "./lazy_view";
import { modelWords } from "./model_choice";
import { askingProps } from "./obstacle";
import { StoredSystemPrompt } from "./stored_system_prompt";
import { SystemPromptEditor } from "./system_prompt_editor";
import { TypedWords } from "./typed_words";

const examples = ["empty.example.1", "empty.example.2", "empty.example.3"] as const;

const PersonaPicker = lazyView(async () => (await import("./persona_picker")).PersonaPicker);
const ChangedParameters = lazyView(
  async () => (await import("./inspector/changed_parameters")).ChangedParameters,
);

export function EmptyState({ app, session }: { app: App; session: OpenSession }) {
  const { value: model } = app.next.model;
  const asking = askingProps(app);
  const isReady = app.next.options.value !== null && !asking.disabled;
  const hasPersonas = (app.offer.personas.list.value ?? []).length > 0;
  // What a session that exists already begins with can only be read.
  const isStored = session.id.value !== null;
  return (
    <div class="transcript-frame">
      <div class="transcript">
        <section class="column empty" aria-label={t("list.newChat")}>
          {app.hasMissed.value && (
            <p class="missed" role="alert">
              {t("empty.missed")}
            </p>
          )}
          <h2>{t("empty.headline")}</h2>
          <p class="about">{t("empty.about")}</p>
          {model !== null && <p class="model-line">{modelWords(model)}</p>}
          {app.next.numChanged.value > 0 && <ChangedParameters app={app} />}
          <ul class="examples" aria-label={t("empty.examples")}>
            {examples.map((example) => (
              <li key={example}>
                <button type="button" {...asking} disabled={!isReady} onClick={() => void app.send(t(example))}>
                  {t(example)}
                </button>
              </li>
            ))}
          </ul>
          {hasPersonas && <PersonaPicker app={app} />}
          {isStored ? (
            <StoredSystemPrompt text={session.systemPrompt.value} />
          ) : (
            <SystemPromptEditor text={session.systemPrompt} />
          )}
          {app.login.isOpen.value && (
            <small class="open-hint">
              <TypedWords text={t("empty.open")} />
            </small>
          )}
        </section>
      </div>
    </div>
  );
}
