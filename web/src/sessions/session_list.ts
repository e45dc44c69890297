/**
 * The stored sessions, newest first, as far as the reader has asked for them; the pinned ones apart.
 *
 * Owns the list; the server is the truth, and a session created here stands in it at once. What is
 * deleted leaves the list before it is final.
 */

import { computed, signal, type ReadonlySignal } from "@preact/signals";

import { t } from "../i18n/catalogue";
import { ApiError, changeSession, deleteSession, listSessions } from "../wire/api";
import type { WireConversation } from "../wire/protocol";
import type { LastSeen, SeenList } from "./last_seen";

export interface SessionGroup {
  name: string;
  sessions: WireConversation[];
}

/** What the reader has done to a session that the server has not confirmed yet. */
interface Change {
  readonly sessionId: string;
  readonly fields: Partial<Pick<WireConversation, "title" | "pinned">>;
}

export class SessionList {
  /** What the list shows. */
  readonly sessions: ReadonlySignal<readonly WireConversation[]>;
  readonly hasMore = signal(false);
  readonly isLoaded = signal(false);
  readonly problem = signal<string | null>(null);
  /** The sessions as the server has told of them. */
  readonly #known = signal<readonly WireConversation[]>([]);
  readonly #hidden = signal<ReadonlySet<string>>(new Set());
  readonly #changes = signal<readonly Change[]>([]);
  /** What is deleted for good; a reply that was on its way then may still have it. */
  readonly #removed = new Set<string>();
  /** The last of those that were read in the order of use; pinned ones may be older. */
  #oldest: WireConversation | undefined;
  /** Counts the questions for the newest sessions, so that the reply to an earlier one is not taken. */
  #turn = 0;
  #isAsking = false;
  /** Ends with the last change: what the reader did last is what the server does last. */
  #changing = Promise.resolve();
  readonly #lastSeen: LastSeen;

  constructor(lastSeen: LastSeen) {
    this.#lastSeen = lastSeen;
    this.sessions = computed(() =>
      this.#known.value
        .filter(({ id }) => !this.#hidden.value.has(id))
        .map((session) => changed(session, this.#changes.value)),
    );
  }

  /** Read the newest sessions again; older ones already shown are kept. */
  async refresh(): Promise<void> {
    const turn = (this.#turn += 1);
    const isNewest = () => turn === this.#turn;
    this.#isAsking = true;
    await this.#read(this.#lastSeen.readList(), (list) => this.#takeNewest(list), isNewest);
    if (isNewest()) this.#isAsking = false;
  }

  async loadMore(): Promise<void> {
    await this.#read(listSessions(this.#oldest?.id), (page) => {
      this.hasMore.value = page.has_more;
      this.#oldest = page.data.at(-1) ?? this.#oldest;
      this.#take(this.#known.value, page.data);
    });
  }

  add(session: WireConversation): void {
    this.#take([session], this.#known.value);
    this.#askAgain();
  }

  /** Take a session out of the list, not yet off the server. */
  hide(sessionId: string): void {
    this.#hidden.value = new Set([...this.#hidden.value, sessionId]);
  }

  isHidden(sessionId: string): boolean {
    return this.#hidden.value.has(sessionId);
  }

  unhide(sessionId: string): void {
    this.#hidden.value = new Set([...this.#hidden.value].filter((id) => id !== sessionId));
  }

  /** Delete a session for good, or raise ApiError; one that is gone already is what was wanted. */
  async remove(sessionId: string): Promise<void> {
    await deleteSession(sessionId).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    });
    this.#removed.add(sessionId);
    this.#take(this.#known.value, []);
    this.unhide(sessionId);
  }

  async rename(sessionId: string, title: string): Promise<void> {
    await this.#change(sessionId, { title });
  }

  async pin(sessionId: string, pinned: boolean): Promise<void> {
    await this.#change(sessionId, { pinned });
  }

  /** Change what the server then tells anew; the list shows the change until then, at once. */
  async #change(sessionId: string, fields: Change["fields"]): Promise<void> {
    const change = { sessionId, fields };
    this.#changes.value = [...this.#changes.value, change];
    this.#changing = this.#changing.then(() =>
      this.#read(changeSession(sessionId, fields), (told) => this.#replace(told)),
    );
    await this.#changing;
    this.#changes.value = this.#changes.value.filter((each) => each !== change);
  }

  #replace(told: WireConversation): void {
    this.#known.value = this.#known.value.map((each) => (each.id === told.id ? told : each));
    this.#askAgain();
  }

  /** A question that is under way may be answered as if what was done meanwhile was not. */
  #askAgain(): void {
    if (this.#isAsking) void this.refresh();
  }

  #takeNewest({ page, pinned, isCopy }: SeenList): void {
    // What is shown is newer than any copy.
    if (isCopy && this.isLoaded.value) return;
    const last = page.data.at(-1);
    const older = page.has_more && last !== undefined ? this.#olderThan(last) : [];
    if (older.length === 0) {
      this.hasMore.value = page.has_more;
      this.#oldest = last;
    }
    this.#take(pinned, [...page.data, ...older]);
  }

  /** Know the sessions of both lists, as the first one has them, and no others. */
  #take(first: readonly WireConversation[], then: readonly WireConversation[]): void {
    this.#known.value = merge(first, then).filter(({ id }) => !this.#removed.has(id));
  }

  #olderThan(session: WireConversation): WireConversation[] {
    return this.#known.value.filter(({ updated_at }) => updated_at < session.updated_at);
  }

  /** Have a reply taken, or told why there is none; what is not wanted any more leaves no trace. */
  async #read<T>(
    reply: Promise<T>,
    take: (told: T) => void,
    isWanted = () => true,
  ): Promise<void> {
    try {
      const told = await reply;
      if (!isWanted()) return;
      take(told);
      this.problem.value = null;
      this.isLoaded.value = true;
    } catch (error) {
      if (isWanted()) this.problem.value = error instanceof Error ? error.message : String(error);
    }
  }
}

/** Return a session as it is once these changes are done. */
function changed(session: WireConversation, changes: readonly Change[]): WireConversation {
  const own = changes.filter(({ sessionId }) => sessionId === session.id);
  return own.reduce((before, { fields }) => ({ ...before, ...fields }), session);
}

/** Return the id of the session that stands where this one stood once it is gone, or null. */
export function neighbourOf(
  sessions: readonly WireConversation[],
  sessionId: string,
): string | null {
  const index = sessions.findIndex(({ id }) => id === sessionId);
  if (index === -1) return null;
  return (sessions[index + 1] ?? sessions[index - 1])?.id ?? null;
}

/** Return the pinned sessions, then the others under the days they were last used. */
export function groupSessions(sessions: readonly WireConversation[], now: Date): SessionGroup[] {
  const pinned = sessions.filter((session) => session.pinned);
  const groups = pinned.length === 0 ? [] : [{ name: t("list.group.pinned"), sessions: pinned }];
  for (const session of sessions.filter((each) => !each.pinned)) {
    const name = dayName(new Date(session.updated_at * 1000), now);
    const last = groups.at(-1);
    if (last?.name === name) last.sessions.push(session);
    else groups.push({ name, sessions: [session] });
  }
  return groups;
}

function dayName(day: Date, now: Date): string {
  const midnight = (date: Date) => new Date(date).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(now) - midnight(day)) / 86_400_000);
  if (days <= 0) return t("list.group.today");
  if (days === 1) return t("list.group.yesterday");
  if (days <= 7) return t("list.group.week");
  if (days <= 30) return t("list.group.month");
  return t("list.group.earlier");
}

/** Return the sessions of both lists, each once as the first list has it, newest first. */
function merge(
  first: readonly WireConversation[],
  then: readonly WireConversation[],
): WireConversation[] {
  const known = new Set(first.map(({ id }) => id));
  const all = [...first, ...then.filter(({ id }) => !known.has(id))];
  return all.toSorted((one, other) => other.updated_at - one.updated_at);
}
