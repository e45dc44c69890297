/**
 * The personas of the tenant: its named prompts, and what the workers have made of them.
 *
 * Owns the list as it was last read, and the texts that were asked for. A prompt's text never
 * changes within a version.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

import { getPrompt, listPrompts } from "../wire/api";
import type { WirePrompt } from "../wire/protocol";
import type { PersonaChoice } from "./choices";

export class Personas {
  /** Null until they are known, and where they cannot be read. */
  readonly list: ReadonlySignal<readonly WirePrompt[] | null>;
  readonly #list = signal<readonly WirePrompt[] | null>(null);
  readonly #texts = new Map<string, Promise<string>>();
  #tenant = "";

  constructor() {
    this.list = this.#list;
  }

  /** Read them, again if need be; a failure leaves what was known. */
  async refresh(tenant: string): Promise<void> {
    this.#tenant = tenant;
    this.#list.value = await listPrompts(tenant).catch(() => this.#list.value);
  }

  find(name: string): WirePrompt | null {
    return this.#list.value?.find((prompt) => prompt.name === name) ?? null;
  }

  /** Return the text of a persona, read once for each version. */
  textOf({ name, version }: WirePrompt): Promise<string> {
    const key = `${version} ${name}`;
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const text = getPrompt(this.#tenant, name).then((prompt) => prompt.text ?? "");
    this.#texts.set(key, text);
    text.catch(() => this.#texts.delete(key));
    return text;
  }
}

/** Return the variables that have neither a value nor a default. */
export function missingVariables(prompt: WirePrompt, { variables }: PersonaChoice): string[] {
  return prompt.variables
    .filter(({ name, default: standing }) => standing === null && variables[name] === undefined)
    .map(({ name }) => name);
}

/** Return what a create carries for a persona; values of variables that it no longer has do not. */
export function promptField(
  choice: PersonaChoice,
  prompt: WirePrompt | null,
): { id: string; variables: Record<string, string> } {
  const isKnown = (name: string) => prompt?.variables.some((each) => each.name === name) ?? true;
  const given = Object.entries(choice.variables).filter(([name]) => isKnown(name));
  return { id: choice.name, variables: Object.fromEntries(given) };
}
