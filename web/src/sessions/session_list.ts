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
import type { LastSeen } from "./last_seen";

export interface SessionGroup {
  name: string;
  sessions: WireConversation[];
}

export class SessionList {
  /** What the list shows. */
  readonly sessions: ReadonlySignal<readonly WireConversation[]>;
  readonly hasMore = signal(false);
  readonly isLoaded = signal(false);
  readonly problem = signal<string | null>(null);
  readonly #known = signal<readonly WireConversation[]>([]);
  readonly #hidden = signal<ReadonlySet<string>>(new Set());
  /** The last of those that were read in the order of use; pinned ones may be older. */
  #oldest: WireConversation | undefined;
  readonly #lastSeen: LastSeen;

  constructor(lastSeen: LastSeen) {
    this.#lastSeen = lastSeen;
    this.sessions = computed(() =>
      this.#known.value.filter(({ id }) => !this.#hidden.value.has(id)),
    );
  }

  /** Read the newest sessions again; older ones already shown are kept. */
  async refresh(): Promise<void> {
    await this.#read(async () => {
      const { page, pinned } = await this.#lastSeen.readList();
      const last = page.data.at(-1);
      const older = page.has_more && last !== undefined ? this.#olderThan(last) : [];
      if (older.length === 0) {
        this.hasMore.value = page.has_more;
        this.#oldest = last;
      }
      this.#known.value = merge(pinned, [...page.data, ...older]);
    });
  }

  async loadMore(): Promise<void> {
    await this.#read(async () => {
      const page = await listSessions(this.#oldest?.id);
      this.hasMore.value = page.has_more;
      this.#oldest = page.data.at(-1) ?? this.#oldest;
      this.#known.value = merge(this.#known.value, page.data);
    });
  }

  add(session: WireConversation): void {
    this.#known.value = merge([session], this.#known.value);
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
    this.#known.value = this.#known.value.filter(({ id }) => id !== sessionId);
    this.unhide(sessionId);
  }

  async rename(sessionId: string, title: string): Promise<void> {
    await this.#change(sessionId, { title });
  }

  async pin(sessionId: string, pinned: boolean): Promise<void> {
    await this.#change(sessionId, { pinned });
  }

  /** Change what the server then tells anew; the row shows the change at once. */
  async #change(sessionId: string, change: Partial<WireConversation>): Promise<void> {
    const before = this.#known.value;
    const show = (fields: Partial<WireConversation>) => {
      this.#known.value = this.#known.value.map((session) =>
        session.id === sessionId ? { ...session, ...fields } : session,
      );
    };
    show(change);
    const isDone = await this.#read(async () => show(await changeSession(sessionId, change)));
    if (!isDone) this.#known.value = before;
  }

  #olderThan(session: WireConversation): WireConversation[] {
    return this.#known.value.filter(({ updated_at }) => updated_at < session.updated_at);
  }

  async #read(task: () => Promise<void>): Promise<boolean> {
    try {
      await task();
      this.problem.value = null;
      this.isLoaded.value = true;
      return true;
    } catch (error) {
      this.problem.value = error instanceof Error ? error.message : String(error);
      return false;
    }
  }
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
