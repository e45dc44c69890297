/** Taking sessions over from a file that an export made. */

import { signal } from "@preact/signals";

import { plural, t } from "../i18n/catalogue";
import { importSessions, type WireImported } from "../wire/api";

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
      this.outcome.value = outcomeWords(await importSessions(await archiveOf(file)));
      this.#onImported();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.outcome.value = t("list.notImported", { reason });
    } finally {
      this.isBusy.value = false;
    }
  }
}

function outcomeWords(imported: WireImported): string {
  const { length: numStored } = imported.conversation_ids;
  const { length: numThere } = imported.existing_conversation_ids;
  const there = plural("list.thereAlready", numThere);
  if (numThere === 0) return plural("list.imported", numStored);
  return numStored === 0 ? there : `${plural("list.imported", numStored)} ${there}`;
}

async function archiveOf(file: Blob): Promise<object> {
  try {
    const document: unknown = JSON.parse(await file.text());
    if (typeof document === "object" && document !== null) return document;
  } catch {
    // What is no JSON is no export either.
  }
  throw new Error(t("list.noExport"));
}
