/**
 * Who uses the page, and how they log in and out.
 *
 * Owns the answer to whether a key is needed. The page hands a key on once and never keeps it: what
 * stands for it from then on is a cookie that no script can read.
 */

import { computed, signal } from "@preact/signals";

import { ApiError, logIn, logOut, watchForKeyNeeded, whoAmI } from "./wire/api";
import { t } from "./i18n/catalogue";
import type { WireIdentity } from "./wire/protocol";

/** Whose the page is: `tenant/user`, or nobody's; null while the server does not tell. */
export type Owner = string | null;
export const nobody = "";

export class Login {
  readonly identity = signal<WireIdentity | null>(null);
  /** The server wants a key before it shows anything. */
  readonly isNeeded = signal(false);
  readonly isBusy = signal(false);
  /** Why the last try failed, in a sentence. */
  readonly problem = signal<string | null>(null);
  readonly canLogOut = computed(() => this.identity.value?.key_id != null);
  /** Nobody needs a key; false while the server does not tell. */
  readonly isOpen = computed(() => this.identity.value?.key_id === null);
  /** May look at all of the service; where everybody is let in, everybody may. */
  readonly isOperator = computed(
    () => this.isOpen.value || this.identity.value?.role === "operator",
  );
  readonly owner = computed<Owner>(() => {
    const { value: identity } = this.identity;
    if (identity !== null) return `${identity.tenant}/${identity.user}`;
    return this.isNeeded.value ? nobody : null;
  });
  readonly #onLogOut: () => Promise<void>;
  readonly #onChange: () => void;

  /**
   * `onLogOut` drops what was kept for the user, `onChange` begins everything anew: nothing of one
   * user may be left for another.
   */
  constructor(onLogOut: () => Promise<void>, onChange: () => void) {
    this.#onLogOut = onLogOut;
    this.#onChange = onChange;
    watchForKeyNeeded(() => this.#askForKey());
  }

  /** Find out who uses the page; without a reply it stays as it was known. */
  async identify(): Promise<void> {
    this.identity.value = await whoAmI().catch(() => this.identity.value);
  }

  async logIn(key: string): Promise<void> {
    this.isBusy.value = true;
    try {
      await logIn(key.trim());
      this.#onChange();
    } catch (error) {
      this.problem.value = error instanceof ApiError ? problemWords(error) : String(error);
    } finally {
      this.isBusy.value = false;
    }
  }

  async logOut(): Promise<void> {
    try {
      await logOut();
    } catch (error) {
      // A login that is over already is what was wanted; any other failure leaves it as it is.
      if (!(error instanceof ApiError) || error.status !== 401) {
        this.problem.value = error instanceof Error ? error.message : String(error);
        return;
      }
    }
    await this.#onLogOut();
    this.#onChange();
  }

  #askForKey(): void {
    this.identity.value = null;
    this.isNeeded.value = true;
  }
}

function problemWords(error: ApiError): string {
  if (error.code === "key_expired") return t("login.expiredKey");
  if (error.status === 401) return t("login.wrongKey");
  if (error.status === 429) return t("login.tooMany");
  return error.message;
}
