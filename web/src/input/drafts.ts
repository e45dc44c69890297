/**
 * What the reader has written and not sent: a draft for each place; see `places`.
 *
 * Owns the drafts of this page, and that their copies in the browser's storage outlive it. A draft
 * belongs to its place and never shows up in another one. Copies belong to one user, as the sessions
 * kept in this browser do.
 *
 * Tabs share the drafts of conversations, and each has a new chat of its own. A tab writes what was
 * changed in it and leaves the others; what another tab writes is shown here too, unless the reader
 * has written something else in that place of this tab: that stays, and is kept again once the other
 * is sent.
 */

import { signal } from "@preact/signals";

import type { Owner } from "../login";
import {
  emptyDraft,
  isBeingSent,
  isEmpty,
  isShared,
  join,
  nameOf,
  parseKept,
  placeOfName,
  readKept,
  storageName,
  takenOver,
  writeKept,
  type Draft,
  type Kept,
  type KeptDrafts,
} from "./kept_drafts";
import { isComposer, isWithin, moved, placeOfHeld, type Place } from "./places";
import { Tab } from "./tab";

const writeDelayMs = 500;

export class Drafts {
  /** The browser has no room for the drafts, or none for anything. */
  readonly isRefused = signal(false);
  readonly #drafts = signal<ReadonlyMap<Place, Draft>>(new Map());
  /** Changed here since the last copy. */
  readonly #changed = new Set<Place>();
  /** Written here since the page was opened. */
  readonly #written = new Set<Place>();
  readonly #tab: Tab;
  #owner: Owner = null;
  #begun: Promise<void> | undefined;
  #isRestored = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(tab = new Tab()) {
    this.#tab = tab;
  }

  at(place: Place): Draft {
    return this.#drafts.value.get(place) ?? emptyDraft;
  }

  /** Return the text at a place. */
  of(place: Place): string {
    return this.at(place).text;
  }

  places(): Place[] {
    return [...this.#drafts.value.keys()];
  }

  /** Return what is attached to any draft, of this page or kept, also by other tabs. */
  attachedIds(): ReadonlySet<string> {
    const drafts = [...this.#drafts.value.values(), ...Object.values(readKept().drafts)];
    return new Set(drafts.flatMap(({ attached }) => attached.map(({ id }) => id)));
  }

  set(place: Place, text: string): void {
    if (text !== this.of(place)) this.put(place, { text, attached: this.at(place).attached });
  }

  put(place: Place, draft: Draft): void {
    const drafts = new Map(this.#drafts.value);
    if (isEmpty(draft)) drafts.delete(place);
    else drafts.set(place, draft);
    this.#drafts.value = drafts;
    this.#written.add(place);
    this.#change(place);
  }

  /** Have a draft in another place, above what is there. */
  move(from: Place, to: Place): void {
    const draft = this.at(from);
    if (from === to || isEmpty(draft)) return;
    this.put(from, emptyDraft);
    this.put(to, join(draft, this.at(to)));
  }

  /** A session has got or lost its id; all that is in it goes with it. */
  readdress(from: string | null, to: string | null): void {
    for (const place of this.places()) {
      if (isWithin(place, from)) this.move(place, moved(place, from, to));
    }
  }

  /** Show again what this owner had written; what somebody else had is dropped. */
  async restore(owner: Owner): Promise<void> {
    this.#begun ??= this.#tab.begin();
    await this.#begun;
    await this.#tab.alone(async () => {
      const open = await this.#tab.open();
      const kept = readKept();
      const isSomeoneElses = owner !== null && kept.owner !== null && owner !== kept.owner;
      if (isSomeoneElses) this.erase();
      this.#owner = owner ?? kept.owner;
      const isFirst = !this.#isRestored;
      this.#isRestored = true;
      if (isFirst && !isSomeoneElses) this.#show(takenOver(kept.drafts, this.#tab, open, Date.now()));
      this.keep();
    });
  }

  /** Another page has written to the storage. */
  follow({ key, newValue }: Pick<StorageEvent, "key" | "newValue">): void {
    const kept = parseKept(newValue);
    if (key !== storageName || !this.#isRestored || kept.owner !== this.#owner) return;
    const shared = new Map(this.#drafts.value);
    for (const place of this.places()) {
      if (place === null || !isShared(place)) continue;
      const isGone = kept.drafts[place] === undefined;
      if (!this.#isOwn(place) || isBeingSent(kept.drafts, place, this.at(place))) shared.delete(place);
      else if (isGone) this.#change(place);
    }
    for (const [name, draft] of Object.entries(kept.drafts)) {
      if (isShared(name) && !this.#isOwn(name)) shared.set(name, draft);
    }
    this.#drafts.value = shared;
  }

  /** Drop all drafts: whoever wrote them is gone. */
  erase(): void {
    this.#changed.clear();
    this.#written.clear();
    this.#drafts.value = new Map();
    this.#write({ owner: null, drafts: {} });
  }

  /** Copy what has changed, now. */
  keep(): void {
    if (!this.#isRestored || this.#changed.size === 0) return;
    clearTimeout(this.#timer);
    const { owner, drafts } = readKept();
    // Somebody else has logged in since, in another tab: these texts are not theirs.
    if (owner !== null && owner !== this.#owner) return;
    for (const place of this.#changed) {
      const name = nameOf(place, this.#tab.id);
      const draft = this.at(place);
      delete drafts[name];
      if (!isEmpty(draft)) drafts[name] = { ...draft, atMs: Date.now() };
    }
    this.#changed.clear();
    this.#write({ owner: this.#owner, drafts });
  }

  #change(place: Place): void {
    this.#changed.add(place);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.keep(), writeDelayMs);
  }

  /** Whether the reader has something here that came from no other page. */
  #isOwn(place: Place): boolean {
    return this.#written.has(place) && !isEmpty(this.at(place));
  }

  /** Show what was kept; what was written before that stays in its place, and nothing is lost. */
  #show(kept: KeptDrafts): void {
    const written = this.#drafts.value;
    const shown = new Map(written);
    for (const [name, draft] of Object.entries(kept)) {
      const place = placeOfName(name, this.#tab.id);
      if (place !== undefined && !this.#changed.has(place)) shown.set(place, draft);
    }
    this.#drafts.value = shown;
    this.#write({ owner: this.#owner, drafts: kept });
    for (const place of written.keys()) {
      const draft = kept[nameOf(place, this.#tab.id)];
      const held = placeOfHeld(place);
      if (isComposer(place) && draft !== undefined) this.put(held, join(this.at(held), draft));
    }
  }

  #write(kept: Kept): void {
    const isKept = writeKept(kept, Date.now());
    this.isRefused.value = !isKept && Object.keys(kept.drafts).length > 0;
  }
}

