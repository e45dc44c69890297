/**
 * The copies of drafts in the browser's storage, as one record that all tabs share.
 *
 * Knows their names: that of their place, and for what belongs to one tab, the tab's name in front.
 * Decides what becomes of the drafts of tabs that are gone: what they were sending is not sent, and
 * the new chat that was written to last goes to the next tab. The texts alone are kept here, and the
 * names of what is attached to them.
 */

import { readJson } from "../kept";
import type { Owner } from "../login";
import {
  isListOf,
  isMadeOf,
  isMaybe,
  isNumber,
  isObject,
  isText,
  isTextOrNull,
  membersThatAre,
  parse,
} from "../shape";
import { placeOfChoices, placeOfHeld, senderOf, type Place } from "./places";

export interface Attached {
  readonly id: string;
  readonly numBytes: number;
}

export interface Draft {
  readonly text: string;
  readonly attached: readonly Attached[];
  /** Once it has been sent: the message that it was to follow, by the server's name, if it has one. */
  readonly sentAfter?: string | null | undefined;
}

export interface KeptDraft extends Draft {
  readonly atMs: number;
}

/** By name, the one changed last at the end. */
export type KeptDrafts = Record<string, KeptDraft>;

const isKeptDraft = isMadeOf<KeptDraft>({
  text: isText,
  attached: isListOf(isMadeOf<Attached>({ id: isText, numBytes: isNumber })),
  sentAfter: isMaybe(isText),
  atMs: isNumber,
});

export interface Kept {
  owner: Owner;
  drafts: KeptDrafts;
}

export const storageName = "chatserve:drafts";
export const emptyDraft: Draft = { text: "", attached: [] };

const ofTab = "new/";
/** Storage holds a few million; beyond this the texts changed longest ago are not kept. */
const maxChars = 500_000;
const maxAgeMs = 30 * 86_400_000;
/** Where nobody knows which tabs are open, one that has written nothing for so long is gone. */
const goneAfterMs = 86_400_000;

export function nameOf(place: Place, tab: string): string {
  return place === null || place.startsWith("/") ? ofTab + tab + (place ?? "") : place;
}

/** Return the place that a name stands for in a tab; undefined for what is another tab's. */
export function placeOfName(name: string, tab: string): Place | undefined {
  if (!name.startsWith(ofTab)) return name;
  const [owner, place] = apart(name);
  if (owner !== tab) return undefined;
  return place === "" ? null : place;
}

export function isEmpty({ text, attached }: Draft): boolean {
  return text === "" && attached.length === 0;
}

/** Return two drafts as one, the first above the second; what is more than one was never sent so. */
export function join(first: Draft, second: Draft): Draft {
  if (isEmpty(first)) return second;
  if (isEmpty(second)) return first;
  const text = [first.text, second.text].filter((each) => each !== "").join("\n\n");
  return { text, attached: [...first.attached, ...second.attached] };
}

/** Return whether a name is of a place that all tabs have. */
export function isShared(name: string): boolean {
  return !name.startsWith(ofTab) && !name.startsWith("/");
}

/** Return whether a tab is sending what is written in a composer. */
export function isBeingSent(drafts: KeptDrafts, composer: string, written: Draft): boolean {
  return Object.entries(drafts).some(([name, draft]) => {
    const isFromThere = name.startsWith(ofTab) && senderOf(apart(name)[1]) === composer;
    return isFromThere && draft.text === written.text && idsOf(draft) === idsOf(written);
  });
}

function idsOf({ attached }: Draft): string {
  return attached.map(({ id }) => id).join();
}

/** Return the drafts as a tab finds them: with what gone tabs leave to it. */
export function takenOver(
  drafts: KeptDrafts,
  tab: { id: string; isNew: boolean },
  open: ReadonlySet<string> | null,
  nowMs: number,
): KeptDrafts {
  const isGone = (name: string, { atMs }: KeptDraft) => {
    const [owner] = apart(name);
    if (owner === tab.id) return false;
    return open === null ? atMs < nowMs - goneAfterMs : !open.has(owner);
  };
  const returned = withReturned(drafts, (name, draft) => apart(name)[0] === tab.id || isGone(name, draft));
  return tab.isNew ? withNewChat(returned, tab.id, isGone) : returned;
}

type IsOf = (name: string, draft: KeptDraft) => boolean;

/** What was on its way when its page went is in its conversation again, not to be lost. */
function withReturned(drafts: KeptDrafts, isOver: IsOf): KeptDrafts {
  const returned = { ...drafts };
  for (const [name, draft] of Object.entries(drafts)) {
    if (!name.startsWith(ofTab)) continue;
    const [tab, place] = apart(name);
    const sender = senderOf(place);
    if (sender === undefined || !isOver(name, draft)) continue;
    delete returned[name];
    const composer = nameOf(sender, tab);
    const target = returned[composer] === undefined ? composer : nameOf(placeOfHeld(sender), tab);
    returned[target] = { ...join(returned[target] ?? emptyDraft, draft), atMs: draft.atMs };
  }
  return returned;
}

/** The new chat of a tab that is gone becomes that of this one, with all that belongs to it. */
function withNewChat(drafts: KeptDrafts, tab: string, isGone: IsOf): KeptDrafts {
  const isWritten = (name: string) => name.startsWith(ofTab) && apart(name)[1] !== placeOfChoices;
  const left = Object.entries(drafts).findLast(([name, draft]) => isWritten(name) && isGone(name, draft));
  if (left === undefined) return drafts;
  const [gone] = apart(left[0]);
  const taken = Object.entries(drafts).map(([name, draft]) => {
    const isLeft = name.startsWith(ofTab) && apart(name)[0] === gone;
    return [isLeft ? ofTab + tab + apart(name)[1] : name, draft] as const;
  });
  return Object.fromEntries(taken);
}

/** Return the tab and the place in it that a name is made of. */
function apart(name: string): [tab: string, place: string] {
  const rest = name.slice(ofTab.length);
  const end = rest.indexOf("/");
  return end === -1 ? [rest, ""] : [rest.slice(0, end), rest.slice(end)];
}

export function readKept(): Kept {
  return toKept(readJson(() => localStorage, storageName));
}

export function parseKept(text: string | null): Kept {
  return toKept(parse(text));
}

/** Drafts that are none are left out; so is everything where it is not known whose it is. */
function toKept(kept: unknown): Kept {
  if (!isObject(kept) || !isTextOrNull(kept["owner"])) return { owner: null, drafts: {} };
  return { owner: kept["owner"], drafts: membersThatAre(kept["drafts"], isKeptDraft) };
}

/** Keep the drafts changed last, as far as there is room; return whether there was for all of them. */
export function writeKept({ owner, drafts }: Kept, nowMs: number): boolean {
  let room = maxChars;
  const young = Object.entries(drafts).filter(([, { atMs }]) => atMs > nowMs - maxAgeMs);
  const short = young.filter(([, { text }]) => text.length <= maxChars);
  const firstKept = short.findLastIndex(([, { text }]) => (room -= text.length) < 0) + 1;
  const kept = { owner, drafts: Object.fromEntries(short.slice(firstKept)) };
  try {
    localStorage.setItem(storageName, JSON.stringify(kept));
    return Object.keys(kept.drafts).length === young.length;
  } catch {
    return false;
  }
}
