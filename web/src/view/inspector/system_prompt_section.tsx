/** What stands in front of the conversation: the persona, and what was written for it alone. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import type { WirePrompt } from "../../wire/protocol";
import { PersonaPicker, readinessWords } from "../persona_picker";
import { SystemPromptEditor } from "../system_prompt_editor";

export function SystemPromptSection({ app }: { app: App }) {
  const session = app.current.value;
  const chosen = session.parameters.choices.value.persona;
  const persona = chosen && app.offer.personas.find(chosen.name);
  // What is sent is sent: a prompt that changes while the chat is being stored would be lost.
  const isOpen = session.id.value === null && session.running.value === null;
  return (
    <details class="inspector-part" open>
      <summary>
        <h3>{t("session.systemPrompt")}</h3>
      </summary>
      <PersonaPicker app={app} />
      {persona !== null && <PersonaText key={persona.name} app={app} persona={persona} />}
      {isOpen ? (
        <SystemPromptEditor text={session.systemPrompt} />
      ) : (
        <OwnPrompt text={session.systemPrompt.value} />
      )}
    </details>
  );
}

function PersonaText({ app, persona }: { app: App; persona: WirePrompt }) {
  const text = useSignal("");
  useEffect(() => {
    app.offer.personas.textOf(persona).then(
      (read) => (text.value = read),
      () => (text.value = persona.excerpt),
    );
  }, [persona.name, persona.version]);
  return (
    <section class="prompt-text">
      <h4 dir="auto">{persona.name}</h4>
      <p>
        {t("persona.version", { version: persona.version })},{" "}
        {readinessWords(persona, app.next.model.value?.id ?? "")}
      </p>
      <blockquote dir="auto" tabIndex={0}>
        {text.value}
      </blockquote>
    </section>
  );
}

function OwnPrompt({ text }: { text: string }) {
  if (text === "") return <p class="inspector-note">{t("inspector.noPrompt")}</p>;
  return (
    <section class="prompt-text">
      <h4>{t("inspector.ownPrompt")}</h4>
      <blockquote dir="auto" tabIndex={0}>
        {text}
      </blockquote>
    </section>
  );
}
