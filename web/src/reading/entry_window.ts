/**
 * How much of a long conversation stands in the document: its end, and before that as much as the
 * reader has gone back.
 *
 * Owns the first entry that is drawn. What is drawn stays drawn while entries are added at the end.
 */

import { signal } from "@preact/signals";

const firstDrawn = 8;
const moreAtOnce = 30;

export class EntryWindow {
  /** Where the first drawing began; null before there was anything to draw. */
  #begin: number | null = null;
  readonly #numEarlier = signal(0);

  /** Return the index of the first entry to draw. */
  startOf(numEntries: number): number {
    if (numEntries > 0) this.#begin ??= Math.max(0, numEntries - firstDrawn);
    const start = (this.#begin ?? 0) - this.#numEarlier.value;
    // A shorter branch has its end drawn all the same.
    return Math.max(0, Math.min(start, numEntries - firstDrawn));
  }

  /** The reader comes near the beginning of what is drawn. */
  extend(): void {
    this.#numEarlier.value += moreAtOnce;
  }

  /** Draw from this entry on at least, with some before it. */
  reach(index: number): void {
    const numEarlier = (this.#begin ?? 0) - index + moreAtOnce;
    this.#numEarlier.value = Math.max(this.#numEarlier.peek(), numEarlier);
  }
}
