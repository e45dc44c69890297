/**
 * The messages of a conversation as a tree, and the branch of it that is shown.
 *
 * Owns which message follows which, and at each fork which way the reader looks. Pure: every
 * function returns a new tree and leaves the old one alone. A key is this page's own name for a
 * message and never changes; its item id is the server's, null until the server has told it.
 */

import type { Signal } from "@preact/signals";

import { isSettled, type Answer } from "./answer";

interface MessageNode {
  readonly key: string;
  /** Null for the first message. */
  readonly parentKey: string | null;
  readonly itemId: string | null;
}

export interface SystemMessage extends MessageNode {
  readonly kind: "system";
  readonly text: string;
}

export interface UserMessage extends MessageNode {
  readonly kind: "user";
  readonly text: string;
}

export interface AnswerMessage extends MessageNode {
  readonly kind: "answer";
  readonly answer: Signal<Answer>;
  /** It goes on from the text of the answer before it. */
  readonly continues: boolean;
}

export type Message = SystemMessage | UserMessage | AnswerMessage;

export interface MessageTree {
  readonly messages: ReadonlyMap<string, Message>;
  /** For a message (null: the start), the one after it that is shown; without one, the newest. */
  readonly chosen: ReadonlyMap<string | null, string>;
}

export const emptyTree: MessageTree = { messages: new Map(), chosen: new Map() };

/** Return the tree with more messages, each after its parent, in the order of writing. */
export function withMessages(tree: MessageTree, added: readonly Message[]): MessageTree {
  const messages = new Map(tree.messages);
  for (const message of added) messages.set(message.key, message);
  return { ...tree, messages };
}

/** Return the tree with the ids that the server gave to messages of this page. */
export function withItemIds(
  tree: MessageTree,
  itemIds: Readonly<Record<string, string>>,
): MessageTree {
  const messages = new Map(tree.messages);
  for (const [key, itemId] of Object.entries(itemIds)) {
    const message = messages.get(key);
    if (message !== undefined) messages.set(key, { ...message, itemId });
  }
  return { ...tree, messages };
}

/**
 * Return for each message (null: the start) those that follow it, in the order of writing. Where
 * only the end of a conversation is there, it starts with what follows a message that is not.
 */
export function followersOf(tree: MessageTree): ReadonlyMap<string | null, readonly Message[]> {
  const followers = new Map<string | null, Message[]>();
  for (const message of tree.messages.values()) {
    const { parentKey } = message;
    const place = parentKey !== null && tree.messages.has(parentKey) ? parentKey : null;
    const siblings = followers.get(place);
    if (siblings === undefined) followers.set(place, [message]);
    else siblings.push(message);
  }
  return followers;
}

/** Return the branch that is shown, from the first message to the last. */
export function pathOf(tree: MessageTree, followers = followersOf(tree)): Message[] {
  const path: Message[] = [];
  for (let key: string | null = null; ; ) {
    const next: readonly Message[] = followers.get(key) ?? [];
    const chosenKey = tree.chosen.get(key);
    const shown = next.find((message) => message.key === chosenKey) ?? next.at(-1);
    if (shown === undefined) return path;
    if (path.length === tree.messages.size) throw new Error("messages follow each other in a circle");
    path.push(shown);
    key = shown.key;
  }
}

/** Return of messages in the order of writing the last one and those that lead to it. */
export function branchToLast(messages: readonly Message[]): Message[] {
  const known = new Map(messages.map((message) => [message.key, message]));
  const branch: Message[] = [];
  for (let message = messages.at(-1); message !== undefined; ) {
    branch.push(message);
    message = message.parentKey === null ? undefined : known.get(message.parentKey);
  }
  return branch.reverse();
}

/** Return the tree with the branch shown that goes through a message. */
export function choose(tree: MessageTree, key: string): MessageTree {
  const chosen = new Map(tree.chosen);
  for (let message = tree.messages.get(key); message !== undefined; ) {
    chosen.set(message.parentKey, message.key);
    message = message.parentKey === null ? undefined : tree.messages.get(message.parentKey);
  }
  return { ...tree, chosen };
}

/** Return the tree without a message and all that follow it. */
export function withoutBranch(tree: MessageTree, key: string): MessageTree {
  const messages = new Map(tree.messages);
  for (const gone of branchKeys(tree, key)) messages.delete(gone);
  const chosen = new Map([...tree.chosen].filter(([, child]) => messages.has(child)));
  return { messages, chosen };
}

/** Return a message and all that follow it, in the order of writing. */
export function branchKeys(tree: MessageTree, key: string): string[] {
  const keys = new Set([key]);
  for (const message of tree.messages.values()) {
    if (message.parentKey !== null && keys.has(message.parentKey)) keys.add(message.key);
  }
  return [...keys];
}

/** Return the keys of what the server knows: a list made from now on has them, or they are gone. */
export function storedKeys(tree: MessageTree): ReadonlySet<string> {
  const stored = [...tree.messages.values()].filter(
    (message) =>
      message.itemId !== null && (message.kind !== "answer" || isSettled(message.answer.value)),
  );
  return new Set(stored.map(({ key }) => key));
}

/**
 * Return the tree as the server has it now, with what only this page has.
 *
 * Messages that both know keep their key, and answers their signal. Of what `expected` names, that
 * which the server does not list is gone. The reader goes on seeing the branch they saw; what was
 * written elsewhere at its end is shown with it.
 */
export function merge(
  tree: MessageTree,
  stored: readonly Message[],
  expected: ReadonlySet<string>,
): MessageTree {
  const messages = new Map(adopt(tree, stored).map((message) => [message.key, message]));
  for (const message of tree.messages.values()) {
    const isOwn = !messages.has(message.key) && !expected.has(message.key);
    const hasPlace = message.parentKey === null || messages.has(message.parentKey);
    if (isOwn && hasPlace) messages.set(message.key, message);
  }
  const seen = pathOf(tree).map(({ parentKey, key }) => [parentKey, key] as const);
  return { messages, chosen: new Map([...tree.chosen, ...seen]) };
}

/** Return stored messages under the keys that the tree knows them by. */
function adopt(tree: MessageTree, stored: readonly Message[]): Message[] {
  const known = new Map<string, string>();
  for (const message of tree.messages.values()) {
    for (const name of namesOf(message)) known.set(name, message.key);
  }
  const keys = new Map<string | null, string>();
  for (const message of stored) {
    const key = namesOf(message).flatMap((name) => known.get(name) ?? [])[0];
    keys.set(message.key, key ?? message.key);
  }
  return stored.map((message) => {
    const key = keys.get(message.key) ?? message.key;
    const parentKey = keys.get(message.parentKey) ?? message.parentKey;
    return { ...(tree.messages.get(key) ?? message), key, parentKey, itemId: message.itemId };
  });
}

/** Return by what the server's picture of a message and this page's are known for the same. */
function namesOf(message: Message): string[] {
  const names = message.itemId === null ? [] : [message.itemId];
  const responseId = message.kind === "answer" ? message.answer.value.responseId : null;
  return responseId === null ? names : [...names, responseId];
}
