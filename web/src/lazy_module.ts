/**
 * A part of the page that is fetched when it is first needed.
 *
 * Owns whether the part is there. Who reads `current` is drawn again when it arrives; until then,
 * and where it cannot be had, the reader shows what it can without it. A fetch that failed is
 * tried again by the next request.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

export class LazyModule<Module> {
  readonly #current = signal<Module | null>(null);
  readonly #hasFailed = signal(false);
  #fetching: Promise<void> | null = null;

  constructor(private readonly fetchModule: () => Promise<Module>) {}

  get current(): ReadonlySignal<Module | null> {
    return this.#current;
  }

  /** Whether the last fetch brought nothing; not while another one is on its way. */
  get hasFailed(): ReadonlySignal<boolean> {
    return this.#hasFailed;
  }

  /** Fetch the part unless it is there; settles either way, without an error. */
  request(): Promise<void> {
    this.#hasFailed.value = false;
    this.#fetching ??= this.fetchModule().then(
      (module) => void (this.#current.value = module),
      () => {
        this.#fetching = null;
        this.#hasFailed.value = true;
      },
    );
    return this.#fetching;
  }
}
