/**
 * The search in titles and messages.
 *
 * Owns the words that are looked for and what was found so far. The server looks at a part of the
 * messages with each call and says where to go on; a search goes on by itself until it has found
 * enough to look at, and then when the reader asks for more.
 */

import { computed, signal } from "@preact/signals";

import { searchSessions } from "../wire/api";
import type { WireHit } from "../wire/protocol";

const typingMs = 200;
const enoughHits = 20;

export class SessionSearch {
  readonly words = signal("");
  readonly hits = signal<readonly WireHit[]>([]);
  readonly isSearching = signal(false);
  readonly problem = signal<string | null>(null);
  readonly isActive = computed(() => this.words.value.trim() !== "");
  readonly hasMore = computed(() => this.#cursor.value !== null);
  readonly #cursor = signal<string | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the searches begun, so that an answer to an earlier one is not taken for this one's. */
  #turn = 0;

  /** Look for other words, once the reader pauses. */
  type(words: string): void {
    this.words.value = words;
    clearTimeout(this.#timer);
    this.#turn += 1;
    this.isSearching.value = this.isActive.value;
    this.problem.value = null;
    if (this.isActive.value) this.#timer = setTimeout(() => void this.#begin(), typingMs);
    else this.#show([], null);
  }

  clear(): void {
    this.type("");
  }

  async loadMore(): Promise<void> {
    if (this.#cursor.value !== null) await this.#run(this.hits.value.length + enoughHits);
  }

  async #begin(): Promise<void> {
    this.#show([], null);
    await this.#run(enoughHits);
  }

  async #run(numWanted: number): Promise<void> {
    const turn = this.#turn;
    this.isSearching.value = true;
    try {
      do {
        const page = await searchSessions(this.words.value.trim(), this.#cursor.value);
        if (turn !== this.#turn) return;
        this.#show(withHits(this.hits.value, page.data), page.cursor);
      } while (this.#cursor.value !== null && this.hits.value.length < numWanted);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.problem.value = error instanceof Error ? error.message : String(error);
    }
    this.isSearching.value = false;
  }

  #show(hits: readonly WireHit[], cursor: string | null): void {
    this.hits.value = hits;
    this.#cursor.value = cursor;
  }
}

/** Return the hits of two calls; a session found by both has the matches of both. */
function withHits(known: readonly WireHit[], added: readonly WireHit[]): WireHit[] {
  const hits = new Map(known.map((hit) => [hit.conversation.id, hit]));
  for (const hit of added) {
    const earlier = hits.get(hit.conversation.id);
    const matches = [...(earlier?.matches ?? []), ...hit.matches];
    hits.set(hit.conversation.id, { ...hit, matches });
  }
  return [...hits.values()];
}
