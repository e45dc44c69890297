/**
 * Stored sessions, read from the server, or as this browser saw them last while it is away.
 *
 * Owns the copies of the list and of the sessions opened last, and whose they are: what was kept
 * for one user is gone before another one sees the page, and when the user logs out. Keys are
 * never among it. Where the browser keeps nothing, all works as long as the server is there.
 */

import { ApiError, getSession, listItems, listPinned, listSessions } from "../wire/api";
import { nobody, type Owner } from "../login";
import type { Check } from "../shape";
import type { WireConversation, WireItem } from "../wire/protocol";
import { BrowserDatabase, byTime, type Table } from "./browser_database";
import { isCopy, isListCopy, type Copy, type ListCopy } from "./copies";

const maxSessions = 50;
/** What a screen shows of a session at first is in the first page; the rest comes in large ones. */
const itemsOfEnd = 16;
const itemsPerPage = 100;
/** Beyond this a copy costs more than it is worth; characters of all messages together. */
const maxChars = 2_000_000;

export interface StoredSession {
  session: WireConversation;
  items: WireItem[];
  /** When the copy was made that is shown while the server is away; null: the server has just told. */
  seenAtMs: number | null;
}

export interface SeenList extends ListCopy {
  /** The server is away; this is what it told some time ago. */
  isCopy: boolean;
}

export class LastSeen {
  readonly #database = new BrowserDatabase();
  /** What the server said last about each session, in short. */
  readonly #stamps = new Map<string, string>();
  /** Nobody is logged in any more: what still comes in is not kept. */
  #isClosed = false;
  /** Copies are neither made nor shown before it is known whose they are. */
  readonly #isOwned: Promise<void>;
  #setOwned!: () => void;

  constructor() {
    this.#isOwned = new Promise((resolve) => (this.#setOwned = resolve));
  }

  /** Keep what belongs to this owner, and nothing else. */
  async belongTo(owner: Owner): Promise<void> {
    this.#isClosed = owner === nobody;
    if (owner !== null) await quietly(this.#changeOwner(owner));
    this.#setOwned();
  }

  /** Return a session; before that `onEnd` gets its newest messages, if these are not all. */
  async readSession(
    sessionId: string,
    onEnd?: (end: StoredSession) => Promise<void>,
  ): Promise<StoredSession> {
    try {
      // In this order an answer that ends in between is in the messages, not lost.
      const session = await getSession(sessionId);
      const showEnd = onEnd && ((items: WireItem[]) => onEnd({ session, items, seenAtMs: null }));
      const items = await readItems(sessionId, showEnd);
      this.#stamps.set(sessionId, stampOf(session));
      void this.#keep({ session, items, [byTime]: Date.now() });
      return { session, items, seenAtMs: null };
    } catch (error) {
      if (isGone(error)) void this.forget(sessionId);
      const copy = isAway(error) ? await this.#copyOf(sessionId) : undefined;
      if (copy === undefined) throw error;
      return { session: copy.session, items: copy.items, seenAtMs: copy[byTime] };
    }
  }

  /** Return the newest sessions, and those that are pinned. */
  async readList(): Promise<SeenList> {
    try {
      const [page, pinned] = await Promise.all([listSessions(), listPinned()]);
      const list: ListCopy = { page, pinned };
      void this.#withCopies(() => this.#database.put("page", "list", list));
      return { ...list, isCopy: false };
    } catch (error) {
      const copy = isAway(error) ? await this.#listCopy() : undefined;
      if (copy === undefined) throw error;
      return { ...copy, page: { ...copy.page, has_more: false }, isCopy: true };
    }
  }

  /** Return whether somebody has gone on with a session, or deleted it, since it was read here. */
  async hasChanged(sessionId: string): Promise<boolean> {
    try {
      return stampOf(await getSession(sessionId)) !== this.#stamps.get(sessionId);
    } catch (error) {
      return isGone(error);
    }
  }

  /** Keep nothing of a session that is deleted. */
  async forget(sessionId: string): Promise<void> {
    this.#stamps.delete(sessionId);
    await this.#withCopies(() => this.#database.delete("sessions", sessionId));
  }

  async #changeOwner(owner: string): Promise<void> {
    const previous = await this.#database.get("page", "owner");
    // Another tab may have kept something since nobody is logged in.
    if (previous === owner && owner !== nobody) return;
    await this.#database.clear("sessions");
    await this.#database.clear("page");
    await this.#database.put("page", "owner", owner);
  }

  async #keep(copy: Copy): Promise<void> {
    if (numChars(copy.items) > maxChars) return;
    await this.#withCopies(async () => {
      await this.#database.put("sessions", copy.session.id, copy);
      const ids = await this.#database.keysByTime("sessions");
      const surplus = ids.slice(0, Math.max(0, ids.length - maxSessions));
      for (const id of surplus) await this.#database.delete("sessions", id);
    });
  }

  #copyOf(sessionId: string): Promise<Copy | undefined> {
    return this.#read("sessions", sessionId, isCopy);
  }

  #listCopy(): Promise<ListCopy | undefined> {
    return this.#read("page", "list", isListCopy);
  }

  #read<T>(table: Table, key: string, isOne: Check<T>): Promise<T | undefined> {
    return this.#withCopies(async () => {
      const kept = await this.#database.get(table, key);
      return isOne(kept) ? kept : undefined;
    });
  }

  async #withCopies<T>(task: () => Promise<T>): Promise<T | undefined> {
    await this.#isOwned;
    return this.#isClosed ? undefined : quietly(task());
  }
}

/** Return all messages of a session in the order of writing; they are read from the end. */
async function readItems(
  sessionId: string,
  onEnd: ((items: WireItem[]) => Promise<void>) | undefined,
): Promise<WireItem[]> {
  const items: WireItem[] = [];
  for (let isFirst = true; ; isFirst = false) {
    const limit = isFirst && onEnd !== undefined ? itemsOfEnd : itemsPerPage;
    const page = await listItems(sessionId, limit, items.at(-1)?.id);
    items.push(...page.data);
    if (!page.has_more || page.data.length === 0) return items.reverse();
    if (isFirst) await onEnd?.(items.toReversed());
  }
}

/** A browser that keeps nothing is no error: the page then works only while the server is there. */
function quietly<T>(task: Promise<T>): Promise<T | undefined> {
  return task.catch(() => undefined);
}

/** A turn changes the time and the answers in flight, a new title the version. */
function stampOf(session: WireConversation): string {
  const { updated_at, active_response_ids, "chatserve:version": version } = session;
  return JSON.stringify([updated_at, active_response_ids, version]);
}

function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Return whether a failed read means that the server, or its store, cannot be reached. */
function isAway(error: unknown): boolean {
  return error instanceof ApiError && [0, 502, 503, 504].includes(error.status);
}

function numChars(items: readonly WireItem[]): number {
  return items.reduce((sum, { content }) => {
    return sum + content.reduce((chars, { text }) => chars + text.length, 0);
  }, 0);
}
