/**
 * What was taken away and can be had back for a moment.
 *
 * Owns the one offer to undo. A removal becomes final when its time is over, when another one
 * follows, or when the page is left.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

import type { LeftRemoval } from "./sessions/left_removals";

const undoMs = 8_000;
const problemMs = 8_000;

export interface Removal {
  /** What was taken away, in words. */
  readonly words: string;
  /** What was taken away; null for what the server does not have. */
  readonly target: LeftRemoval | null;
  /** Show it again. */
  restore(): void;
  /** Take it away for good. */
  commit(): Promise<void>;
}

export class Undo {
  readonly offer: ReadonlySignal<Removal | null>;
  /** Why the last removal did not become final, for a moment; it was restored then. */
  readonly problem: ReadonlySignal<string | null>;
  readonly #problem = signal<string | null>(null);
  readonly #offer = signal<Removal | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #problemTimer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.offer = this.#offer;
    this.problem = this.#problem;
  }

  /** Offer to undo a removal that the reader sees already. */
  add(removal: Removal): void {
    this.finish();
    this.#showProblem(null);
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
      this.#showProblem(error instanceof Error ? error.message : String(error));
    });
  }

  #showProblem(words: string | null): void {
    clearTimeout(this.#problemTimer);
    this.#problem.value = words;
    if (words !== null) this.#problemTimer = setTimeout(() => this.#showProblem(null), problemMs);
  }

  #take(): Removal | null {
    clearTimeout(this.#timer);
    const removal = this.#offer.value;
    this.#offer.value = null;
    return removal;
  }
}
