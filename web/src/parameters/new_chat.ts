/**
 * The chat that is not stored yet: one for each tab, until its first message is sent.
 *
 * Owns what it begins with, and that this is kept like a draft while the reader looks elsewhere and
 * over a reload. A chat that follows another one has its model and nothing else of it: a prompt or
 * a temperature that was meant for one conversation would otherwise change the next unseen.
 */

import { effect, untracked } from "@preact/signals";

import type { OpenSession } from "../chat/open_session";
import type { Drafts } from "../input/drafts";
import { placeOfChoices, placeOfPrompt } from "../input/places";
import { parse } from "../shape";
import { choicesFrom, isSame, noChoices, type Choices } from "./choices";

export class NewChat {
  readonly #drafts: Drafts;
  readonly #make: () => OpenSession;
  #session: OpenSession;
  #unfollow: () => void;

  constructor(drafts: Drafts, make: () => OpenSession) {
    this.#drafts = drafts;
    this.#make = make;
    this.#session = make();
    this.#unfollow = this.#follow(this.#session);
  }

  get session(): OpenSession {
    return this.#session;
  }

  /** Return the chat that is not begun yet, or else the one that comes after `previous`. */
  after(previous: OpenSession): OpenSession {
    const { id, entries } = this.#session;
    if (id.value === null && entries.value.length === 0) return this.#session;
    this.#unfollow();
    this.#session = this.#make();
    const { model } = previous.parameters.choices.value;
    this.#begin(this.#keptChoices() ?? { ...noChoices, model });
    this.#unfollow = this.#follow(this.#session);
    return this.#session;
  }

  /** The drafts of an earlier page are there; what was chosen since counts. */
  restore(): void {
    const { systemPrompt, parameters, id } = this.#session;
    const isUntouched = systemPrompt.value === "" && isSame(parameters.choices.value, noChoices);
    if (id.value === null && isUntouched) this.#begin(this.#keptChoices() ?? noChoices);
  }

  #begin(choices: Choices): void {
    const prompt = this.#drafts.of(placeOfPrompt);
    this.#session.parameters.beginWith(choices);
    this.#session.systemPrompt.value = prompt;
  }

  #keptChoices(): Choices | null {
    const kept = this.#drafts.of(placeOfChoices);
    return kept === "" ? null : choicesFrom(parse(kept));
  }

  /** Keep what a chat begins with as long as it is not stored. */
  #follow({ id, systemPrompt, parameters }: OpenSession): () => void {
    return effect(() => {
      const isNew = id.value === null;
      const prompt = isNew ? systemPrompt.value : "";
      const choices = isNew ? parameters.choices.value : noChoices;
      untracked(() => {
        this.#drafts.set(placeOfPrompt, prompt);
        this.#drafts.set(placeOfChoices, isSame(choices, noChoices) ? "" : JSON.stringify(choices));
      });
    });
  }
}
