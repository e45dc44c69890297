/** Why a conversation cannot be answered as the reader wants it, which nobody decides for them. */

import { t } from "../i18n/catalogue";
import type { WireModel, WirePrompt } from "../wire/protocol";
import type { Choices, PersonaChoice } from "./choices";
import { missingVariables } from "./personas";

/** Return the reason in a sentence, or null; `personas` are null while nobody knows them. */
export function obstacleOfChoices(
  { model, persona }: Choices,
  models: readonly WireModel[],
  personas: readonly WirePrompt[] | null,
): string | null {
  const isGone = model !== null && models.length > 0 && !models.some(({ id }) => id === model);
  if (isGone) return t("model.gone", { model });
  if (persona === null || personas === null) return null;
  const prompt = personas.find(({ name }) => name === persona.name);
  if (prompt === undefined) return t("persona.gone", { persona: persona.name });
  const missing = missingVariable(persona, personas);
  return missing === null ? null : t("persona.missing", { persona: persona.name, variable: missing });
}

/** Return the first variable that the persona needs a value for, or null. */
export function missingVariable(
  persona: PersonaChoice | null,
  personas: readonly WirePrompt[] | null,
): string | null {
  const prompt = personas?.find(({ name }) => name === persona?.name);
  if (persona === null || prompt === undefined) return null;
  return missingVariables(prompt, persona)[0] ?? null;
}
