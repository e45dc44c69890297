/**
 * How much of a long conversation stands in the document: its end, and before that as much as the
 * reader has gone back.
 *
 * Owns the first entry that is drawn. What is drawn stays drawn while entries are added at the end,
 * and while those that come before it arrive.
 */

import { signal } from "@preact/signals";

const firstDrawn = 4;
const moreAtOnce = 10;

/** The part of an entry that says which one it is. */
interface Keyed {
  readonly key: string;
}

export class EntryWindow {
  /** The entry that the first drawing began with; null before there was anything to draw. */
  #firstKey: string | null = null;
  /** Where it stands, or stood on the branch that had it. */
  #begin = 0;
  readonly #numEarlier = signal(0);

  /** Return the index of the first entry to draw. */
  startOf(entries: readonly Keyed[]): number {
    this.#begin = this.#beginOf(entries);
    this.#firstKey ??= entries[this.#begin]?.key ?? null;
    const start = this.#begin - this.#numEarlier.value;
    // A shorter branch has its end drawn all the same.
    return Math.max(0, Math.min(start, entries.length - firstDrawn));
  }

  /** The reader comes near the beginning of what is drawn. */
  extend(): void {
    this.#numEarlier.value += moreAtOnce;
  }

  /** Draw from this entry on at least, with some before it. */
  reach(index: number): void {
    const numEarlier = this.#begin - index + moreAtOnce;
    this.#numEarlier.value = Math.max(this.#numEarlier.peek(), numEarlier);
  }

  #beginOf(entries: readonly Keyed[]): number {
    if (this.#firstKey === null) return Math.max(0, entries.length - firstDrawn);
    const index = entries.findIndex(({ key }) => key === this.#firstKey);
    return index === -1 ? this.#begin : index;
  }
}
