/**
 * The cache view's state while it is open: the live snapshot, and what of it the viewer chose.
 *
 * Owns the choice of worker and request. What was chosen and is there no more leaves nothing
 * chosen; the first worker of the model in use stands in for it.
 */

import { computed, signal } from "@preact/signals";

import { Poll } from "../observe/poll";
import { getCache } from "../wire/service_api";
import { followTakings, silenceS, type Takings } from "./silence";
import { layoutTree } from "./tree_layout";

const intervalMs = 500;

export class CacheWatch {
  readonly poll;
  readonly worker = computed(() => {
    const workers = this.workers.value;
    const preferred = workers.find(({ model }) => model === this.#model);
    return workers.find(({ id }) => id === this.#workerId.value) ?? preferred ?? workers[0] ?? null;
  });
  readonly request = computed(
    () => this.worker.value?.requests.find(({ id }) => isSame(id, this.#requestId.value)) ?? null,
  );
  readonly tree = computed(() => layoutTree(this.worker.value?.nodes ?? []));
  /** For how long the worker has given no news; null while it does. */
  readonly silenceS = computed(() => {
    const worker = this.worker.value;
    return worker === null ? null : silenceS(this.#takings.value, worker.id);
  });
  /** Whose part the snapshot is. */
  readonly view = computed(() => this.poll.reading.value?.value.view ?? "tenant");
  readonly workers = computed(() => this.poll.reading.value?.value.workers ?? []);
  readonly #workerId = signal<string | null>(null);
  readonly #requestId = signal<string | null>(null);
  readonly #takings = signal<Takings>({ atMs: 0, byWorker: new Map() });
  readonly #model: string | null;

  /** Of one tenant alone, if an operator asks for it. */
  constructor(tenant: string | null, model: string | null) {
    this.#model = model;
    this.poll = new Poll(async () => {
      const cache = await getCache(tenant);
      this.#takings.value = followTakings(this.#takings.value, cache.workers, Date.now());
      return cache;
    }, intervalMs);
  }

  chooseWorker(workerId: string): void {
    this.#workerId.value = workerId;
    this.#requestId.value = null;
  }

  /** Choose a request; the one that is chosen is let go. */
  toggleRequest(requestId: string): void {
    this.#requestId.value = this.#requestId.value === requestId ? null : requestId;
  }
}

/** Requests without an id, which are those of others, are not followed. */
function isSame(id: string | null, chosen: string | null): boolean {
  return id !== null && id === chosen;
}
