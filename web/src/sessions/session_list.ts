/**
 * The stored sessions, newest first, as far as the reader has asked for them.
 *
 * Owns the list; the server is the truth, and a session created here stands in it at once.
 */

import { signal } from "@preact/signals";

import { deleteSession, listSessions } from "../wire/api";
import { t } from "../i18n/catalogue";
import type { WireConversation } from "../wire/protocol";

export interface DayGroup {
  name: string;
  sessions: WireConversation[];
}

export class SessionList {
  readonly sessions = signal<readonly WireConversation[]>([]);
  readonly hasMore = signal(false);
  readonly isLoaded = signal(false);
  readonly problem = signal<string | null>(null);

  /** Read the newest sessions again; older ones already shown are kept. */
  async refresh(): Promise<void> {
    await this.#read(async () => {
      const page = await listSessions();
      const oldest = page.data.at(-1);
      const isOlder = (session: WireConversation) =>
        oldest !== undefined && session.updated_at < oldest.updated_at;
      const older = page.has_more ? this.sessions.value.filter(isOlder) : [];
      if (older.length === 0) this.hasMore.value = page.has_more;
      this.sessions.value = merge(page.data, older);
    });
  }

  async loadMore(): Promise<void> {
    await this.#read(async () => {
      const page = await listSessions(this.sessions.value.at(-1)?.id);
      this.hasMore.value = page.has_more;
      this.sessions.value = merge(this.sessions.value, page.data);
    });
  }

  add(session: WireConversation): void {
    this.sessions.value = merge([session], this.sessions.value);
  }

  async remove(sessionId: string): Promise<boolean> {
    return this.#read(async () => {
      await deleteSession(sessionId);
      this.sessions.value = this.sessions.value.filter(({ id }) => id !== sessionId);
    });
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

/** Return the sessions under the days they were last used, seen from `now`. */
export function groupByDay(sessions: readonly WireConversation[], now: Date): DayGroup[] {
  const groups: DayGroup[] = [];
  for (const session of sessions) {
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

function merge(
  first: readonly WireConversation[],
  then: readonly WireConversation[],
): WireConversation[] {
  const known = new Set(first.map(({ id }) => id));
  return [...first, ...then.filter(({ id }) => !known.has(id))];
}
