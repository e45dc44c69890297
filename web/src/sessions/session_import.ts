/** Taking sessions over from a file that an export made. */

import { signal } from "@preact/signals";

import { loadLaterWords, t } from "../i18n/catalogue";

export class SessionImport {
  /** What became of the last file, in a sentence. */
  readonly outcome = signal<string | null>(null);
  readonly isBusy = signal(false);
  readonly #onImported: () => void;

  constructor(onImported: () => void) {
    this.#onImported = onImported;
  }

  /** Read a file and store its sessions, all of them or none. */
  async take(file: Blob): Promise<void> {
    this.isBusy.value = true;
    try {
      const [{ importFile }] = await Promise.all([import("./import_file"), loadLaterWords()]);
      this.outcome.value = await importFile(file);
      this.#onImported();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.outcome.value = t("list.notImported", { reason });
    } finally {
      this.isBusy.value = false;
    }
  }
}
