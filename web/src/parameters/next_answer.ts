/**
 * What the next answer of the conversation on the screen is asked for with: the reader's choices,
 * as far as the service offers what was chosen. Owns nothing; all of it follows from these two.
 */

import { computed } from "@preact/signals";

import type { AnswerOptions } from "../chat/session_hooks";
import type { Choices } from "./choices";
import { missingVariable, obstacleOfChoices } from "./obstacle";
import type { Offer } from "./offer";
import { promptField } from "./personas";
import { changedFields, fieldsToSend } from "./sampling";

export class NextAnswer {
  /** The model of the conversation on the screen; none while the one that was chosen is away. */
  readonly model = computed(() => {
    const { value: models } = this.#offer.models;
    const { model: chosen } = this.#choices();
    return (chosen === null ? models[0] : models.find(({ id }) => id === chosen)) ?? null;
  });
  /** Why the conversation cannot go on as the reader chose, in a sentence; null while it can. */
  readonly problem = computed(() => {
    const { models, personas } = this.#offer;
    return obstacleOfChoices(this.#choices(), models.value, personas.list.value);
  });
  /** The persona has a variable without a value. */
  readonly isVariableMissing = computed(() => {
    return missingVariable(this.#choices().persona, this.#offer.personas.list.value) !== null;
  });
  /** How many sampling fields are not at their defaults. */
  readonly numChanged = computed(() => {
    const described = this.model.value?.["chatserve:sampling"] ?? [];
    return changedFields(described, this.#choices().fields).length;
  });
  /** Null while no answer can be asked for. */
  readonly options = computed<AnswerOptions | null>(() => {
    const { value: model } = this.model;
    if (model === null || this.problem.value !== null) return null;
    const { persona, fields } = this.#choices();
    const prompt = persona && promptField(persona, this.#offer.personas.find(persona.name));
    const sampling = fieldsToSend(model["chatserve:sampling"] ?? [], fields);
    return { model: model.id, fields: { ...sampling, ...(prompt && { prompt }) } };
  });
  readonly #choices: () => Choices;
  readonly #offer: Offer;

  constructor(choices: () => Choices, offer: Offer) {
    this.#choices = choices;
    this.#offer = offer;
  }
}
