/**
 * The tree of messages of one conversation as the reader sees it: a branch, as entries.
 *
 * Owns the tree, and what of it is taken off the screen until its deletion is final. Knows neither
 * the server nor what an answer is asked for with.
 */

import { computed, signal, type ReadonlySignal } from "@preact/signals";

import { entriesOf, reuse, type Entry } from "./entries";
import {
  branchKeys,
  choose,
  emptyTree,
  followersOf,
  merge,
  pathOf,
  storedKeys,
  withItemIds,
  withMessages,
  withoutBranch,
  type Message,
  type MessageTree,
} from "./message_tree";

export class ShownMessages {
  readonly path: ReadonlySignal<readonly Message[]>;
  readonly entries: ReadonlySignal<readonly Entry[]>;
  readonly #tree = signal<MessageTree>(emptyTree);
  readonly #hidden = signal<ReadonlySet<string>>(new Set());

  constructor() {
    const shown = computed(() => [...this.#hidden.value].reduce(withoutBranch, this.#tree.value));
    const followers = computed(() => followersOf(shown.value));
    this.path = computed(() => pathOf(shown.value, followers.value));
    let last: readonly Entry[] = [];
    // Entries that stay the same object are not rendered again.
    this.entries = computed(() => {
      last = reuse(last, entriesOf(this.path.value, followers.value));
      return last;
    });
  }

  get(key: string): Message | undefined {
    return this.#tree.value.messages.get(key);
  }

  /** Return what the server calls a message that others follow; null while it has no name for it. */
  itemIdOf(parentKey: string | null): string | null {
    if (parentKey === null) return "root";
    const parent = this.get(parentKey);
    // A message that is still on its way goes by the server's name here too.
    return parent === undefined ? parentKey : parent.itemId;
  }

  /** Return what the server calls the place of a message (null: the next); null without a name. */
  placeOf(key: string | null): string | null {
    return this.#placeAfter(key === null ? this.lastKey : (this.get(key)?.parentKey ?? null));
  }

  /** Return whether the server has a message of this text in such a place, on any branch. */
  hasStored(text: string, place: string): boolean {
    return [...this.#tree.value.messages.values()].some(
      (message) =>
        message.itemId !== null && textOf(message) === text && this.placeOf(message.key) === place,
    );
  }

  get lastKey(): string | null {
    return this.path.value.at(-1)?.key ?? null;
  }

  /** Show new messages, each after its parent. */
  add(messages: readonly Message[]): void {
    const last = messages.at(-1);
    if (last === undefined) return;
    this.#tree.value = choose(withMessages(this.#tree.value, messages), last.key);
  }

  /** Note the ids that the server gave to messages, by their keys. */
  name(itemIds: Readonly<Record<string, string>>): void {
    this.#tree.value = withItemIds(this.#tree.value, itemIds);
  }

  /** Show the branch that goes through a message. */
  choose(key: string): void {
    this.#tree.value = choose(this.#tree.value, key);
  }

  /** Take a message and what follows it off the screen; return how many messages these are. */
  hide(key: string): number {
    this.#hidden.value = new Set([...this.#hidden.value, key]);
    return branchKeys(this.#tree.value, key).length;
  }

  unhide(key: string): void {
    this.#hidden.value = new Set([...this.#hidden.value].filter((each) => each !== key));
  }

  /** Return a message and what follows it, on all branches. */
  branch(key: string): Message[] {
    return branchKeys(this.#tree.value, key).flatMap((each) => this.get(each) ?? []);
  }

  /** Forget a message and what follows it. */
  drop(key: string): void {
    this.#tree.value = withoutBranch(this.#tree.value, key);
    this.unhide(key);
  }

  /** Return what a list that is asked for now has, or what it lacks is gone; see `merge`. */
  expected(): ReadonlySet<string> {
    return storedKeys(this.#tree.value);
  }

  /**
   * Take over what the server has. The first time, show the branch that was written to last; it is
   * the one that the reader saw the end of when the rest comes.
   */
  merge(stored: readonly Message[], expected: ReadonlySet<string>): void {
    const shown = this.lastKey ?? stored.at(-1)?.key;
    const merged = merge(this.#tree.value, stored, expected);
    this.#tree.value = shown === undefined ? merged : choose(merged, shown);
  }

  /** A system prompt begins nothing: what follows it is the first message. */
  #placeAfter(key: string | null): string | null {
    const isPrompt = key !== null && this.get(key)?.kind === "system";
    return this.itemIdOf(isPrompt ? null : key);
  }
}

function textOf(message: Message): string {
  return message.kind === "answer" ? message.answer.value.text : message.text;
}
