/**
 * What stands in the transcript: the messages of the branch that is shown.
 *
 * An answer and those that continue it are one entry, since they are one text.
 */

import type { ReadonlySignal } from "@preact/signals";

import type { Answer } from "./answer";
import type { AnswerMessage, Message } from "./message_tree";

interface BaseEntry {
  /** That of its first message, so that it stays when an answer is continued. */
  readonly key: string;
  /** The messages that stand in the same place, this one among them, in the order of writing. */
  readonly siblings: readonly string[];
}

export interface UserEntry extends BaseEntry {
  readonly kind: "user";
  readonly text: string;
}

export interface AnswerEntry extends BaseEntry {
  readonly kind: "answer";
  /** What was said before the reader asked to go on; usually nothing. */
  readonly before: readonly ReadonlySignal<Answer>[];
  readonly answer: ReadonlySignal<Answer>;
  readonly lastKey: string;
}

export type Entry = UserEntry | AnswerEntry;

/** Return the entries of a branch; `followers` are the messages that follow each message. */
export function entriesOf(
  path: readonly Message[],
  followers: ReadonlyMap<string | null, readonly Message[]>,
): Entry[] {
  const entries: Entry[] = [];
  for (const message of path) {
    const last = entries.at(-1);
    if (message.kind === "system") continue;
    if (message.kind === "answer" && message.continues && last?.kind === "answer") {
      entries[entries.length - 1] = continued(last, message);
      continue;
    }
    const { key } = message;
    const place = { key, siblings: (followers.get(message.parentKey) ?? [message]).map(keyOf) };
    if (message.kind === "answer") {
      const { answer } = message;
      entries.push({ kind: "answer", ...place, before: [], answer, lastKey: key });
    } else {
      entries.push({ kind: "user", ...place, text: message.text });
    }
  }
  return entries;
}

/** Return the text of an answer with what it goes on from. */
export function wholeText({ before, answer }: AnswerEntry): string {
  return [...before, answer].map((part) => part.value.text).join("");
}

function keyOf({ key }: Message): string {
  return key;
}

function continued(entry: AnswerEntry, { answer, key }: AnswerMessage): AnswerEntry {
  return { ...entry, before: [...entry.before, entry.answer], answer, lastKey: key };
}

/** Return `next` with the entries of `previous` in it that are still the same. */
export function reuse(previous: readonly Entry[], next: readonly Entry[]): Entry[] {
  const known = new Map(previous.map((entry) => [entry.key, entry]));
  return next.map((entry) => {
    const earlier = known.get(entry.key);
    return earlier !== undefined && isSame(earlier, entry) ? earlier : entry;
  });
}

function isSame(one: Entry, other: Entry): boolean {
  if (!isSameList(one.siblings, other.siblings)) return false;
  if (one.kind === "user") return other.kind === "user" && one.text === other.text;
  return (
    other.kind === "answer" && one.answer === other.answer && isSameList(one.before, other.before)
  );
}

function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}
