/** The tenant's personas to choose from, and the values that the chosen one asks for. */

import "./persona_picker.css";

import { Fragment } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import type { App } from "../app";
import { plural, t } from "../i18n/catalogue";
import { missingVariables } from "../parameters/personas";
import { readinessOf } from "../parameters/readiness";
import type { WirePrompt } from "../wire/protocol";

/** What the server takes as the value of one variable. */
const maxValueChars = 16_384;

export function PersonaPicker({ app }: { app: App }) {
  const group = useId();
  const { parameters } = app.current.value;
  const chosen = parameters.choices.value.persona?.name ?? null;
  const personas = app.offer.personas.list.value ?? [];
  if (personas.length === 0) return null;
  return (
    <fieldset class="persona-picker">
      <legend>{t("persona.label")}</legend>
      <p class="hint">{t("persona.hint")}</p>
      <div class="personas">
        <label class="persona">
          <input
            type="radio"
            name={group}
            checked={chosen === null}
            onChange={() => parameters.choosePersona(null)}
          />
          <span class="persona-name">{t("persona.none")}</span>
        </label>
        {personas.map((persona) => (
          <Fragment key={persona.name}>
            <label
              class="persona"
              onClick={({ detail }) => {
                // Keys go through all of the choices; a pointer means this one.
                if (detail > 0) app.choosePersona(persona.name);
              }}
            >
              <input
                type="radio"
                name={group}
                checked={chosen === persona.name}
                onChange={() => parameters.choosePersona(persona.name)}
              />
              <span class="persona-name" dir="auto">
                {persona.name}
              </span>
              <span class="persona-state">{readinessWords(persona, app.next.model.value?.id ?? "")}</span>
              <span class="persona-words" dir="auto">
                {persona.excerpt}
              </span>
            </label>
            {persona.name === chosen && <PersonaVariables app={app} persona={persona} />}
          </Fragment>
        ))}
      </div>
    </fieldset>
  );
}

/** Return how much of a persona a model has ready, in words. */
export function readinessWords(persona: WirePrompt, model: string): string {
  const readiness = readinessOf(persona, model);
  const state = t(`persona.state.${readiness?.state ?? "unknown"}`);
  if (readiness === null || readiness.numTokens === 0) return state;
  return `${plural("persona.tokens", readiness.numTokens)}, ${state}`;
}

interface PersonaVariablesProps {
  app: App;
  persona: WirePrompt;
}

function PersonaVariables({ app, persona }: PersonaVariablesProps) {
  const { parameters } = app.current.value;
  const { persona: choice } = parameters.choices.value;
  const group = useRef<HTMLDivElement>(null);
  const isAsked = app.asksForVariables.value;
  useEffect(() => {
    const first = group.current?.querySelector<HTMLElement>(":invalid");
    if (!isAsked || first == null) return;
    app.asksForVariables.value = false;
    first.focus();
  }, [isAsked, choice?.name]);
  if (choice === null || persona.variables.length === 0) return null;
  const missing = missingVariables(persona, choice);
  return (
    <div class="persona-variables" ref={group} role="group" aria-label={t("persona.variables")}>
      {persona.variables.map(({ name, default: standing }) => (
        <label key={name}>
          <span>
            {name} {missing.includes(name) && <small>{t("persona.needed")}</small>}
          </span>
          <textarea
            rows={1}
            maxLength={maxValueChars}
            required={standing === null}
            placeholder={standing ?? ""}
            value={choice.variables[name] ?? ""}
            onInput={({ currentTarget }) => parameters.setVariable(name, currentTarget.value)}
          />
        </label>
      ))}
    </div>
  );
}
