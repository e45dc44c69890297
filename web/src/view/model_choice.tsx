/** What answers in the conversation: a persona of the tenant, and a model. */

import type { App } from "../app";
import { formatCount, t } from "../i18n/catalogue";
import type { WireModel } from "../wire/protocol";

export function ModelChoice({ app }: { app: App }) {
  return (
    <div class="model-choice">
      <PersonaSelect app={app} />
      <ModelSelect app={app} />
    </div>
  );
}

/** Return a model's name with the length of its context, where that is known. */
export function modelWords({ id, max_model_len: maxLen }: WireModel): string {
  return maxLen === undefined ? id : t("empty.context", { model: id, count: formatCount(maxLen) });
}

function PersonaSelect({ app }: { app: App }) {
  const { parameters } = app.current.value;
  const chosen = parameters.choices.value.persona?.name ?? null;
  const names = (app.offer.personas.list.value ?? []).map(({ name }) => name);
  const isGone = chosen !== null && app.offer.personas.list.value !== null && !names.includes(chosen);
  const { entries, load } = app.current.value;
  // A new chat has them on the page.
  const isOnPage = load.value.kind === "ready" && entries.value.length === 0 && !isGone;
  if (isOnPage || (names.length === 0 && chosen === null)) return null;
  return (
    <select
      class="persona-select"
      aria-label={t("header.persona")}
      aria-invalid={isGone}
      value={chosen ?? ""}
      onFocus={() => app.offer.refresh()}
      onChange={({ currentTarget }) => app.choosePersona(currentTarget.value || null)}
    >
      <option value="">{t("persona.none")}</option>
      {chosen !== null && !names.includes(chosen) && <option value={chosen}>{chosen}</option>}
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

function ModelSelect({ app }: { app: App }) {
  const models = app.offer.models.value;
  const { parameters } = app.current.value;
  const chosen = parameters.choices.value.model;
  const isGone = chosen !== null && !models.some(({ id }) => id === chosen);
  const [only] = models;
  if (only === undefined) return null;
  if (models.length === 1 && !isGone) return <span title={modelWords(only)}>{only.id}</span>;
  return (
    <select
      aria-label={t("header.model")}
      aria-invalid={isGone}
      value={chosen ?? only.id}
      onFocus={() => app.offer.refresh()}
      onChange={({ currentTarget }) => parameters.chooseModel(currentTarget.value)}
    >
      {isGone && <option value={chosen}>{t("model.unavailable", { model: chosen })}</option>}
      {models.map((model) => (
        <option key={model.id} value={model.id}>
          {modelWords(model)}
        </option>
      ))}
    </select>
  );
}
