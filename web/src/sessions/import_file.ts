/** A file that an export made: reading it, having it stored, and what became of it in words. */

import { formatBytes, plural, t } from "../i18n/catalogue";
import { importSessions, type WireImported } from "../wire/api";

/** The service takes no larger one; it need not be read to be told so. */
const maxFileBytes = 16 * 2 ** 20;

/** Store the sessions of a file, all of them or none; return what became of it, in a sentence. */
export async function importFile(file: Blob): Promise<string> {
  return outcomeWords(await importSessions(await archiveOf(file)));
}

function outcomeWords(imported: WireImported): string {
  const { length: numStored } = imported.conversation_ids;
  const { length: numThere } = imported.existing_conversation_ids;
  const there = plural("list.thereAlready", numThere);
  if (numThere === 0) return plural("list.imported", numStored);
  return numStored === 0 ? there : `${plural("list.imported", numStored)} ${there}`;
}

async function archiveOf(file: Blob): Promise<object> {
  if (file.size > maxFileBytes) {
    const sizes = { size: formatBytes(file.size), limit: formatBytes(maxFileBytes) };
    throw new Error(t("list.tooLarge", sizes));
  }
  try {
    const document: unknown = JSON.parse(await file.text());
    if (isExport(document)) return document;
  } catch {
    // What is no JSON is no export either.
  }
  throw new Error(t("list.noExport"));
}

/** Of a mistake within an export the service tells better. */
function isExport(document: unknown): document is object {
  return (document as { object?: unknown } | null)?.object === "chatserve.conversations";
}
