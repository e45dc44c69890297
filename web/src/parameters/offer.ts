/**
 * What the service offers to this user: models to ask, and personas of the tenant.
 *
 * Owns both lists as they were last read, and asks again for as long as there is nothing to answer
 * with: an engine may still be loading its weights. Knows nothing of what is chosen from it.
 */

import { computed, signal } from "@preact/signals";

import { t } from "../i18n/catalogue";
import type { Login } from "../login";
import { ApiError, listModels } from "../wire/api";
import type { WireModel } from "../wire/protocol";
import { Personas } from "./personas";

const modelPollMs = 3_000;

export class Offer {
  /** What can be asked; aliases of a model with a persona are not among them. */
  readonly models = signal<readonly WireModel[]>([]);
  readonly personas = new Personas();
  /** Why no model can be used, in a sentence; null while one can. */
  readonly problem = signal<string | null>(null);
  /** The service is there, and no model to answer. */
  readonly isNoneYet = computed(() => this.problem.value !== null && this.models.value.length === 0);
  readonly #login: Login;
  readonly #isAwaited: () => boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `isAwaited` tells whether the model that is wanted is not among those offered. */
  constructor(login: Login, isAwaited: () => boolean) {
    this.#login = login;
    this.#isAwaited = isAwaited;
  }

  /** Read again what there is. */
  refresh(): void {
    void this.#loadModels();
    void this.refreshPersonas();
  }

  async refreshPersonas(): Promise<void> {
    const { value: identity } = this.#login.identity;
    if (identity !== null) await this.personas.refresh(identity.tenant);
  }

  async #loadModels(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const listed = await listModels();
      this.models.value = listed.filter((model) => model["chatserve:persona"] == null);
      this.problem.value = this.models.value.length === 0 ? t("session.modelLoading") : null;
    } catch (error) {
      this.problem.value = error instanceof ApiError ? error.message : String(error);
    }
    const isAwaited = this.problem.value !== null || this.#isAwaited();
    if (!isAwaited || this.#login.isNeeded.value) return;
    this.#timer = setTimeout(() => void this.#loadModels(), modelPollMs);
  }
}
