/**
 * What the reader has written and not sent: one text per session, and one for the new chat.
 *
 * Owns these texts, in memory only. A text belongs to its conversation and never shows up in
 * another one; null is the session that has no id yet.
 */

import { signal } from "@preact/signals";

type Owner = string | null;

export class Drafts {
  readonly #texts = signal<ReadonlyMap<Owner, string>>(new Map());

  of(owner: Owner): string {
    return this.#texts.value.get(owner) ?? "";
  }

  set(owner: Owner, text: string): void {
    const texts = new Map(this.#texts.value);
    if (text === "") texts.delete(owner);
    else texts.set(owner, text);
    this.#texts.value = texts;
  }

  /** Return a message that was not taken, unless the reader has written something since. */
  putBack(owner: Owner, text: string): void {
    if (this.of(owner) === "") this.set(owner, text);
  }

  /** The session has got or lost its id; its draft goes with it. */
  move(from: Owner, to: Owner): void {
    const text = this.of(from);
    this.set(from, "");
    if (text !== "") this.putBack(to, text);
  }
}
