/** What may be attached: files of text. Their bytes decide, not their names. */

import { formatBytes, t } from "../i18n/catalogue";

/** What a file dialog offers first; whatever else is text can be dropped. */
export const offeredTypes =
  "text/*,.md,.json,.jsonl,.yaml,.yml,.toml,.py,.rs,.go,.ts,.tsx,.sh,.sql,.log";

/** Return the text of a file; throw with a sentence for the reader where it cannot be used. */
export async function readTextFile(file: File, maxBytes: number | null): Promise<string> {
  if (maxBytes !== null && file.size > maxBytes) {
    const sizes = { size: formatBytes(file.size), limit: formatBytes(maxBytes) };
    throw new Error(t("attachment.tooLarge", { name: file.name, ...sizes }));
  }
  const text = toText(await file.arrayBuffer());
  if (text === null) throw new Error(t("attachment.notText", { name: file.name }));
  if (text === "") throw new Error(t("attachment.empty", { name: file.name }));
  return text;
}

/** Return bytes as text, or null: what is not UTF-8, or has a zero in it, is not for reading. */
export function toText(bytes: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
