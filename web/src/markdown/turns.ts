/**
 * Work that is done a little at a time: so much at once, and the rest as the page is idle.
 *
 * Owns how much was done since the page was idle last, and who waits.
 */

import { nextIdleTime } from "./idle";

export class Turns {
  #numTaken = 0;
  #isScheduled = false;
  readonly #waiting = new Set<() => void>();

  constructor(private readonly maxAtOnce: number) {}

  /** Return whether one more piece of work may be done now. */
  tryTake(): boolean {
    if (this.#numTaken === this.maxAtOnce) return false;
    this.#numTaken += 1;
    this.#schedule();
    return true;
  }

  /** Call `onTurn` as soon as it may be done; return what calls that off. */
  wait(onTurn: () => void): () => void {
    this.#waiting.add(onTurn);
    this.#schedule();
    return () => void this.#waiting.delete(onTurn);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    void nextIdleTime().then(() => this.#giveOut());
  }

  #giveOut(): void {
    this.#isScheduled = false;
    const next = [...this.#waiting].slice(0, this.maxAtOnce);
    this.#numTaken = next.length;
    for (const onTurn of next) {
      this.#waiting.delete(onTurn);
      onTurn();
    }
    if (next.length > 0) this.#schedule();
  }
}
