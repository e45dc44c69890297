/**
 * Copies of what is attached to unsent messages, in the browser's own database.
 *
 * Each is written once and read after a reload; which message it goes with is the drafts' to say. A
 * copy that is of no message is gone after a while.
 */

import { BrowserDatabase, byTime } from "../sessions/browser_database";
import type { Attachment } from "./attachment";

/** Longer than a draft is kept that nobody changes. */
const maxAgeMs = 31 * 86_400_000;

export class KeptAttachments {
  readonly #database = new BrowserDatabase();

  /** Keep one, or raise what the browser has against it. */
  async put(attachment: Attachment): Promise<void> {
    const kept = { attachment, [byTime]: Date.now() };
    await this.#database.put("attachments", attachment.id, kept);
  }

  async get(id: string): Promise<Attachment | null> {
    const kept = await this.#database.get<{ attachment: Attachment }>("attachments", id);
    return kept?.attachment ?? null;
  }

  async delete(id: string): Promise<void> {
    await this.#database.delete("attachments", id);
  }

  /** Delete what is too old to be of any message but those that have `ids`. */
  async tidy(ids: ReadonlySet<string>): Promise<void> {
    const old = await this.#database.keysByTime("attachments", Date.now() - maxAgeMs);
    for (const id of old) if (!ids.has(id)) await this.delete(id);
  }
}
