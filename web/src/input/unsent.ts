/**
 * The message that is being written in each session: its text, and what is attached to it.
 *
 * Owns the attachments, in memory only: they are too large for the storage that keeps texts over a
 * reload. Null is the session that has no id yet.
 */

import { signal } from "@preact/signals";

import { t } from "../i18n/catalogue";
import { newAttachment, takeApart, withAttachments, type Attachment } from "./attachment";
import type { Drafts } from "./drafts";
import { readTextFile } from "./text_file";

type SessionId = string | null;

export class Unsent {
  /** Why a file was not attached, in a sentence. */
  readonly problem = signal<string | null>(null);
  readonly #drafts: Drafts;
  readonly #attachments = signal<ReadonlyMap<SessionId, readonly Attachment[]>>(new Map());

  constructor(drafts: Drafts) {
    this.#drafts = drafts;
  }

  attachmentsOf(sessionId: SessionId): readonly Attachment[] {
    return this.#attachments.value.get(sessionId) ?? [];
  }

  /** Return the whole message. */
  messageOf(sessionId: SessionId): string {
    return withAttachments(this.#drafts.of(sessionId), this.attachmentsOf(sessionId));
  }

  isEmpty(sessionId: SessionId): boolean {
    return this.#drafts.of(sessionId).trim() === "" && this.attachmentsOf(sessionId).length === 0;
  }

  attachText(sessionId: SessionId, text: string): void {
    this.problem.value = null;
    this.#add(sessionId, [newAttachment(t("attachment.pasted"), text)]);
  }

  /** Attach the files that are text; the last one that is not is told of. */
  async attachFiles(
    sessionId: SessionId,
    files: Iterable<File>,
    maxBytes: number | null,
  ): Promise<void> {
    this.problem.value = null;
    for (const file of files) {
      try {
        this.#add(sessionId, [newAttachment(file.name, await readTextFile(file, maxBytes))]);
      } catch (error) {
        this.problem.value = error instanceof Error ? error.message : String(error);
      }
    }
  }

  detach(sessionId: SessionId, attachment: Attachment): void {
    this.problem.value = null;
    this.#set(
      sessionId,
      this.attachmentsOf(sessionId).filter(({ id }) => id !== attachment.id),
    );
  }

  /** Put an attachment into the text instead. */
  inline(sessionId: SessionId, attachment: Attachment): void {
    const text = this.#drafts.of(sessionId);
    this.detach(sessionId, attachment);
    this.#drafts.set(sessionId, text === "" ? attachment.text : `${text}\n${attachment.text}`);
  }

  clear(sessionId: SessionId): void {
    this.problem.value = null;
    this.#drafts.set(sessionId, "");
    this.#set(sessionId, []);
  }

  /** Return a message that was not taken, unless the reader has written something since. */
  putBack(sessionId: SessionId, message: string): void {
    if (!this.isEmpty(sessionId)) return;
    const { text, attachments } = takeApart(message);
    this.#drafts.putBack(sessionId, text);
    this.#set(sessionId, attachments);
  }

  /** The session has got or lost its id; what is being written goes with it. */
  move(from: SessionId, to: SessionId): void {
    this.#drafts.move(from, to);
    this.#add(to, this.attachmentsOf(from));
    this.#set(from, []);
  }

  #add(sessionId: SessionId, added: readonly Attachment[]): void {
    this.#set(sessionId, [...this.attachmentsOf(sessionId), ...added]);
  }

  #set(sessionId: SessionId, attachments: readonly Attachment[]): void {
    const all = new Map(this.#attachments.value);
    if (attachments.length === 0) all.delete(sessionId);
    else all.set(sessionId, attachments);
    this.#attachments.value = all;
  }
}
