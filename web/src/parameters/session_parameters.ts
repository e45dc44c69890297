/**
 * How one conversation is to be answered: model, persona and sampling fields.
 *
 * Owns the reader's choices and their way to the server, which notes them with the conversation. A
 * chat that is not stored yet has them noted with its creation. What was chosen on another device
 * meanwhile is kept wherever nothing else was chosen here: each note names the version of the
 * conversation that it was made upon, and one that came too late is made again upon the newer one.
 * Knows nothing of what the server offers.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

import { t } from "../i18n/catalogue";
import { ApiError, getSession, noteOfSession } from "../wire/api";
import type { WireConversation, WireSamplingValue } from "../wire/protocol";
import {
  choicesIn,
  isSame,
  mergeChoices,
  noChoices,
  withChoices,
  type Choices,
  type Metadata,
} from "./choices";
import { leaveChoices, takeLeftChoices, type LeftChoices } from "./left_choices";

/** A slider that is moved is noted when it rests. */
const restMs = 400;
const maxTries = 3;

/** The conversation as the server was last known to have it. */
interface Noted {
  readonly sessionId: string;
  readonly version: number;
  readonly metadata: Metadata;
  readonly choices: Choices;
}

export class SessionParameters {
  readonly choices: ReadonlySignal<Choices>;
  /** Why the choices last no longer than the page, in a sentence. */
  readonly problem = signal<string | null>(null);
  readonly #choices = signal(noChoices);
  #noted: Noted | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isNoting = false;

  constructor() {
    this.choices = this.#choices;
  }

  chooseModel(model: string): void {
    this.#change({ model });
  }

  /** Answer with a named prompt of the tenant, or with none. */
  choosePersona(name: string | null): void {
    if (name === (this.#choices.value.persona?.name ?? null)) return;
    this.#change({ persona: name === null ? null : { name, variables: {} } });
  }

  /** Give a variable of the persona a value; an empty one leaves it to its default. */
  setVariable(name: string, value: string): void {
    const { persona } = this.#choices.value;
    if (persona === null) return;
    const { [name]: _before, ...others } = persona.variables;
    const variables = value === "" ? others : { ...others, [name]: value };
    this.#change({ persona: { ...persona, variables } });
  }

  setField(name: string, value: WireSamplingValue): void {
    this.#change({ fields: { ...this.#choices.value.fields, [name]: value } });
  }

  /** Leave a field to its default. */
  resetField(name: string): void {
    const { [name]: _before, ...fields } = this.#choices.value.fields;
    this.#change({ fields });
  }

  resetFields(): void {
    this.#change({ fields: {} });
  }

  /** Begin with choices that were made before. */
  beginWith(choices: Choices): void {
    this.#choices.value = choices;
  }

  /** Return what a conversation that is stored now begins with. */
  toMetadata(): Metadata {
    return withChoices({}, this.#choices.value) ?? {};
  }

  /** Take what the server has of the conversation; what was chosen here and not noted yet stays. */
  take(session: WireConversation): void {
    const version = session["chatserve:version"] ?? 0;
    if (this.#noted !== null && version < this.#noted.version) return;
    const metadata = session.metadata ?? {};
    const choices = choicesIn(metadata);
    const mine = this.#mine(session.id) ?? { chosen: choices, noted: choices };
    this.#choices.value = mergeChoices(mine.noted, mine.chosen, choices);
    this.#noted = { sessionId: session.id, version, metadata, choices };
    this.#noteSoon();
  }

  /** The server stored what this page wanted it to, as far as there was room for it. */
  onStored(session: WireConversation): void {
    const metadata = session.metadata ?? {};
    const version = session["chatserve:version"] ?? 0;
    this.#noted = { sessionId: session.id, version, metadata, choices: choicesIn(metadata) };
    this.#noteSoon();
  }

  /** The conversation is a new chat again. */
  onWithdrawn(): void {
    clearTimeout(this.#timer);
    this.#noted = null;
  }

  /** Have the server note the choices now. */
  async note(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isNoting) return;
    this.#isNoting = true;
    try {
      for (let tries = 0; tries < maxTries && this.#isUnnoted(); tries += 1) await this.#tryToNote();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.problem.value = t("choice.notKept", { reason });
    } finally {
      this.#isNoting = false;
    }
  }

  /** The page is left: note what has not rested yet, and leave it to the next page as well. */
  leave(): void {
    if (this.#noted === null || !this.#isUnnoted()) return;
    const { sessionId, choices: noted } = this.#noted;
    leaveChoices(sessionId, { chosen: this.#choices.value, noted });
    void this.note();
  }

  /** What was chosen here, also by the page before this one, upon what it was chosen. */
  #mine(sessionId: string): LeftChoices | null {
    if (this.#noted === null) return takeLeftChoices(sessionId);
    return { chosen: this.#choices.value, noted: this.#noted.choices };
  }

  #change(change: Partial<Choices>): void {
    this.#choices.value = { ...this.#choices.value, ...change };
    this.#noteSoon();
  }

  #noteSoon(): void {
    clearTimeout(this.#timer);
    if (this.#isUnnoted()) this.#timer = setTimeout(() => void this.note(), restMs);
    else this.problem.value = null;
  }

  #isUnnoted(): boolean {
    return this.#noted !== null && !isSame(this.#noted.choices, this.#choices.value);
  }

  async #tryToNote(): Promise<void> {
    const noted = this.#noted;
    if (noted === null) return;
    const metadata = withChoices(noted.metadata, this.#choices.value);
    if (metadata === null) throw new Error(t("choice.tooLong"));
    try {
      this.onStored(await noteOfSession(noted.sessionId, metadata, noted.version));
    } catch (error) {
      const isLate = error instanceof ApiError && error.code === "version_conflict";
      if (!isLate) throw error;
      this.take(await getSession(noted.sessionId));
    }
  }
}
