/**
 * What was taken away and can be had back for a moment.
 *
 * Owns the one offer to undo. A removal becomes final when its time is over, when another one
 * follows, or when the page is left.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

const undoMs = 8_000;

export interface Removal {
  /** What was taken away, in words. */
  readonly words: string;
  /** Show it again. */
  restore(): void;
  /** Take it away for good. */
  commit(): Promise<void>;
}

export class Undo {
  readonly offer: ReadonlySignal<Removal | null>;
  /** Why the last removal did not become final; it was restored then. */
  readonly problem = signal<string | null>(null);
  readonly #offer = signal<Removal | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.offer = this.#offer;
  }

  /** Offer to undo a removal that the reader sees already. */
  add(removal: Removal): void {
    this.finish();
    this.problem.value = null;
    this.#offer.value = removal;
    this.#timer = setTimeout(() => this.finish(), undoMs);
  }

  undo(): void {
    this.#take()?.restore();
  }

  /** Make the removal final now. */
  finish(): void {
    const removal = this.#take();
    removal?.commit().catch((error: unknown) => {
      removal.restore();
      this.problem.value = error instanceof Error ? error.message : String(error);
    });
  }

  #take(): Removal | null {
    clearTimeout(this.#timer);
    const removal = this.#offer.value;
    this.#offer.value = null;
    return removal;
  }
}
