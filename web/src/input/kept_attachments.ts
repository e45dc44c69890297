/**
 * Copies of what is attached to unsent messages, in the browser's own database.
 *
 * Each is written once and read after a reload; which message it goes with is the drafts' to say, and
 * a copy that is of no draft is of nobody.
 */

import { BrowserDatabase, byTime } from "../sessions/browser_database";
import { isMadeOf, isNumber, isText } from "../shape";
import type { Attachment } from "./attachment";

const isKept = isMadeOf({
  attachment: isMadeOf<Attachment>({
    id: isText,
    name: isText,
    text: isText,
    numLines: isNumber,
    numBytes: isNumber,
    wireBytes: isNumber,
  }),
});

export class KeptAttachments {
  readonly #database = new BrowserDatabase();

  /** Keep one, or raise what the browser has against it. */
  async put(attachment: Attachment): Promise<void> {
    const kept = { attachment, [byTime]: Date.now() };
    await this.#database.put("attachments", attachment.id, kept);
  }

  async get(id: string): Promise<Attachment | null> {
    const kept = await this.#database.get("attachments", id);
    return isKept(kept) ? kept.attachment : null;
  }

  async delete(id: string): Promise<void> {
    await this.#database.delete("attachments", id);
  }

  /** Delete all but those that have `ids`. */
  async tidy(ids: ReadonlySet<string>): Promise<void> {
    const kept = await this.#database.keysByTime("attachments");
    for (const id of kept) if (!ids.has(id)) await this.delete(id);
  }

  async erase(): Promise<void> {
    await this.#database.clear("attachments");
  }
}
