/**
 * The messages that are being written, or on their way: each a text, and what is attached to it.
 *
 * Owns the attachments, which live as long as the drafts that they go with, and what becomes of a
 * message between the composer and the server: it is kept until the server has it, and is back in its
 * place when the server refuses it. What comes back while something else stands there is held beside
 * it. See `places`.
 */

import { computed, signal } from "@preact/signals";

import type { OpenSession } from "../chat/open_session";
import type { Accepted } from "../chat/session_hooks";
import { t } from "../i18n/catalogue";
import { newId } from "../ids";
import type { Owner } from "../login";
import { newAttachment, takeApart, withAttachments, type Attachment } from "./attachment";
import type { Drafts } from "./drafts";
import { KeptAttachments } from "./kept_attachments";
import type { Attached } from "./kept_drafts";
import { isEdit, isWithin, placeOfEdit, placeOfHeld, placeOfOutgoing, senderOf, sessionOf, type Place } from "./places";
import { readTextFile } from "./text_file";

type SessionId = string | null;

/** What is attached beyond this, to all messages together, lasts no longer than the page. */
const maxKeptBytes = 20_000_000;

export class Unsent {
  /** Why a file was not attached, or a change not stored, in a sentence. */
  readonly problem = signal<string | null>(null);
  /** What was attached before the page was opened is not there yet. */
  readonly isLoading = signal(false);
  /** The browser does not keep what is written, in a sentence; told until the reader has seen it. */
  readonly storageProblem = computed(() =>
    (this.#drafts.isRefused.value || this.#isRefused.value) && !this.#isTold.value
      ? t("unsent.notKept")
      : null,
  );
  readonly #drafts: Drafts;
  readonly #kept: KeptAttachments;
  readonly #attachments = signal<ReadonlyMap<string, Attachment>>(new Map());
  readonly #isRefused = signal(false);
  readonly #isTold = signal(false);
  /** Sessions that are known not to be there; what is kept of them may only come later. */
  readonly #gone = new Set<string>();
  /** Nothing is kept before it is known whose it is. */
  readonly #isOwned: Promise<void>;
  #setOwned!: () => void;

  constructor(drafts: Drafts, kept = new KeptAttachments()) {
    this.#drafts = drafts;
    this.#kept = kept;
    this.#isOwned = new Promise((resolve) => (this.#setOwned = resolve));
  }

  attachmentsOf(place: Place): readonly Attachment[] {
    const { value: known } = this.#attachments;
    return this.#drafts.at(place).attached.flatMap(({ id }) => known.get(id) ?? []);
  }

  /** Return the whole message. */
  messageOf(place: Place): string {
    return withAttachments(this.#drafts.of(place), this.attachmentsOf(place));
  }

  isEmpty(place: Place): boolean {
    return this.#drafts.of(place).trim() === "" && this.attachmentsOf(place).length === 0;
  }

  attachText(place: Place, text: string): void {
    this.problem.value = null;
    this.#add(place, newAttachment(t("attachment.pasted"), text));
  }

  /** Attach the files that are text; the last one that is not is told of. */
  async attachFiles(place: Place, files: Iterable<File>, maxBytes: number | null): Promise<void> {
    this.problem.value = null;
    for (const file of files) {
      try {
        this.#add(place, newAttachment(file.name, await readTextFile(file, maxBytes)));
      } catch (error) {
        this.problem.value = error instanceof Error ? error.message : String(error);
      }
    }
  }

  detach(place: Place, attachment: Attachment): void {
    this.problem.value = null;
    const { text, attached } = this.#drafts.at(place);
    this.#drafts.put(place, { text, attached: attached.filter(({ id }) => id !== attachment.id) });
    this.#drop([attachment.id]);
  }

  /** Put an attachment into the text instead. */
  inline(place: Place, attachment: Attachment): void {
    const text = this.#drafts.of(place);
    this.detach(place, attachment);
    this.#drafts.set(place, text === "" ? attachment.text : `${text}\n${attachment.text}`);
  }

  /** Have a message stand in a place, and nothing else. */
  put(place: Place, text: string, attachments: readonly Attachment[]): void {
    const before = this.#drafts.at(place).attached.map(({ id }) => id);
    const after = new Set(attachments.map(({ id }) => id));
    this.#drafts.put(place, { text, attached: attachments.map(toAttached) });
    this.#drop(before.filter((id) => !after.has(id)));
    for (const attachment of attachments) this.#keep(attachment);
  }

  /** Drop what stands in a place: it was sent, or is not wanted. */
  clear(place: Place): void {
    this.problem.value = null;
    this.put(place, "", []);
  }

  /** Drop all that belongs to a session that is deleted. */
  clearSession(sessionId: string): void {
    for (const place of this.#drafts.places()) {
      if (isWithin(place, sessionId) || senderOf(place) === sessionId) this.clear(place);
    }
  }

  /** Take a message out of the composer, on its way to the server; see `Draft` for `sentAfter`. */
  take(sessionId: SessionId, sentAfter: string | null): string {
    const message = this.messageOf(sessionId);
    this.problem.value = null;
    this.#isTold.value ||= this.storageProblem.value !== null;
    this.onSubmitted(sessionId, sentAfter);
    this.#drafts.move(sessionId, placeOfOutgoing(sessionId, newId()));
    this.#drafts.keep();
    return message;
  }

  /** What stands in a place is on its way to the server. */
  onSubmitted(place: Place, sentAfter: string | null): void {
    if (this.isEmpty(place)) return;
    this.#drafts.put(place, { ...this.#drafts.at(place), sentAfter });
  }

  /** Drop what was sent by a page that is gone, and turns out to have arrived. */
  dropArrived(sessionId: SessionId, server: OpenSession["places"]): void {
    for (const place of this.#drafts.places()) {
      const { sentAfter } = this.#drafts.at(place);
      if (!isWithin(place, sessionId) || sentAfter == null) continue;
      if (server.hasStored(this.messageOf(place), sentAfter)) this.put(place, "", []);
    }
  }

  /** A message that was refused is on its way again. */
  takeAgain(sessionId: SessionId, message: string): void {
    for (const place of [sessionId, placeOfHeld(sessionId)]) {
      if (this.messageOf(place) !== message) continue;
      this.#drafts.move(place, placeOfOutgoing(sessionId, newId()));
      return;
    }
  }

  /** The server has a message, and calls messages by other names than this page did. */
  onAccepted(sessionId: SessionId, { text, itemIds }: Accepted): void {
    const place = text === null ? undefined : this.#findSubmitted(sessionId, text);
    if (place !== undefined) this.put(place, "", []);
    for (const [key, itemId] of Object.entries(itemIds)) {
      this.#drafts.move(placeOfEdit(sessionId, key), placeOfEdit(sessionId, itemId));
    }
  }

  /** The server does not take a message: it is in the composer again, or held if that is in use. */
  onRefused(sessionId: SessionId, message: string): void {
    const place = this.#findSubmitted(sessionId, message);
    if (place !== undefined && isEdit(place, sessionId)) return;
    const target = this.isEmpty(sessionId) ? sessionId : placeOfHeld(sessionId);
    if (place !== undefined) {
      this.#drafts.move(place, target);
    } else {
      const { text, attachments } = takeApart(message);
      this.put(target, text, attachments);
    }
  }

  /** Put what is held above what the composer has. */
  release(sessionId: SessionId): void {
    this.#drafts.move(placeOfHeld(sessionId), sessionId);
  }

  /** The session has got or lost its id; what is being written in it goes with it. */
  readdress(from: SessionId, to: SessionId): void {
    this.#drafts.readdress(from, to);
  }

  /** Return the sessions in which something is written. */
  sessionIds(): ReadonlySet<string> {
    return new Set(this.#drafts.places().flatMap((place) => sessionOf(place) ?? []));
  }

  /** A session is gone: what was written in it is in the new chat, or held where that is in use. */
  rescue(sessionId: string): void {
    this.#gone.add(sessionId);
    const places = this.#drafts.places().filter((place) => isWithin(place, sessionId));
    for (const place of [sessionId, ...places]) {
      this.#drafts.move(place, this.isEmpty(null) ? null : placeOfHeld(null));
    }
    this.#drafts.keep();
  }

  /** The session that a message is on its way to has got its id. */
  redirect(message: string, sessionId: string): void {
    const place = this.#findSubmitted(null, message);
    if (place === undefined || senderOf(place) !== null) return;
    this.#drafts.move(place, placeOfOutgoing(sessionId, newId()));
  }

  /** Show again what this owner had written, once what somebody else had is gone: `isOwned`. */
  async restore(owner: Owner, isOwned: Promise<void>): Promise<void> {
    await this.#drafts.restore(owner);
    for (const sessionId of this.#gone) this.rescue(sessionId);
    await isOwned;
    this.#setOwned();
    await this.#load();
    await this.#kept.tidy(this.#drafts.attachedIds()).catch(() => undefined);
  }

  /** Another page has written to the storage. */
  follow(event: Pick<StorageEvent, "key" | "newValue">): void {
    this.#drafts.follow(event);
    void this.#load();
  }

  /** Drop everything: whoever wrote it is gone. */
  async erase(): Promise<void> {
    this.#drafts.erase();
    this.#attachments.value = new Map();
    await this.#kept.erase().catch(() => undefined);
  }

  #add(place: Place, attachment: Attachment): void {
    const { text, attached } = this.#drafts.at(place);
    this.#drafts.put(place, { text, attached: [...attached, toAttached(attachment)] });
    this.#keep(attachment);
  }

  #keep(attachment: Attachment): void {
    if (this.#attachments.value.has(attachment.id)) return;
    this.#attachments.value = new Map([...this.#attachments.value, [attachment.id, attachment]]);
    this.#copy(attachment).catch(() => (this.#isRefused.value = true));
  }

  async #copy(attachment: Attachment): Promise<void> {
    await this.#isOwned;
    const sizes = [...this.#attachments.value.values()].map(({ numBytes }) => numBytes);
    const isFull = sizes.reduce((sum, size) => sum + size, 0) > maxKeptBytes;
    if (isFull) throw new Error("no more is kept");
    // A page that tidies up in between finds the draft that it belongs to.
    this.#drafts.keep();
    await this.#kept.put(attachment);
  }

  #drop(ids: readonly string[]): void {
    const others = [...this.#attachments.value].filter(([id]) => !ids.includes(id));
    this.#attachments.value = new Map(others);
    for (const id of ids) this.#kept.delete(id).catch(() => undefined);
  }

  /** Read what is attached to the drafts and not here yet. */
  async #load(): Promise<void> {
    const missing = this.#drafts
      .places()
      .flatMap((place) => this.#drafts.at(place).attached)
      .filter(({ id }) => !this.#attachments.value.has(id));
    if (missing.length === 0) return;
    this.isLoading.value = true;
    const read = await Promise.all(missing.map(({ id }) => this.#kept.get(id).catch(() => null)));
    const found = read.flatMap((each) => (each === null ? [] : [[each.id, each] as const]));
    this.#attachments.value = new Map([...this.#attachments.value, ...found]);
    this.isLoading.value = false;
  }

  /** Return where a message stands that was sent from here and not taken yet. */
  #findSubmitted(sessionId: SessionId, message: string): Place | undefined {
    const places = this.#drafts.places().filter((place) => this.messageOf(place) === message);
    return (
      places.find((place) => senderOf(place) !== undefined) ??
      places.find((place) => isEdit(place, sessionId))
    );
  }
}

function toAttached({ id, numBytes }: Attachment): Attached {
  return { id, numBytes };
}
