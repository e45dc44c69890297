/**
 * What the reader has written and not sent: one text per session, and one for the new chat.
 *
 * Owns these texts, and their copies in the browser's storage, which outlive a reload. A text
 * belongs to its conversation and never shows up in another one; null is the session that has no
 * id yet. Copies belong to one user, as the sessions kept in this browser do.
 *
 * Tabs share the storage: each writes the texts that were changed in it and leaves the others.
 */

import { signal } from "@preact/signals";

import type { Owner } from "../login";

type SessionId = string | null;
/** By session, the one changed last at the end; "" is the new chat. */
type Texts = Record<string, string>;

const storageName = "chatserve:drafts";
const writeDelayMs = 500;
/** Storage holds a few million; beyond this the texts changed longest ago are not kept. */
const maxChars = 500_000;

export class Drafts {
  readonly #texts = signal<ReadonlyMap<SessionId, string>>(new Map());
  /** Changed here since the last copy. */
  readonly #changed = new Set<SessionId>();
  #owner: Owner = null;
  #isRestored = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  of(sessionId: SessionId): string {
    return this.#texts.value.get(sessionId) ?? "";
  }

  set(sessionId: SessionId, text: string): void {
    if (text === this.of(sessionId)) return;
    const texts = new Map(this.#texts.value);
    if (text === "") texts.delete(sessionId);
    else texts.set(sessionId, text);
    this.#texts.value = texts;
    this.#changed.add(sessionId);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.keep(), writeDelayMs);
  }

  /** Return a message that was not taken, unless the reader has written something since. */
  putBack(sessionId: SessionId, text: string): void {
    if (this.of(sessionId) === "") this.set(sessionId, text);
  }

  /** The session has got or lost its id; its draft goes with it. */
  move(from: SessionId, to: SessionId): void {
    const text = this.of(from);
    this.set(from, "");
    if (text !== "") this.putBack(to, text);
  }

  /** Show again what this owner had written; what somebody else had is dropped. */
  restore(owner: Owner): void {
    const kept = read();
    const isSomeoneElses = owner !== null && kept.owner !== null && owner !== kept.owner;
    if (isSomeoneElses) this.erase();
    this.#owner = owner ?? kept.owner;
    this.#isRestored = true;
    const texts = isSomeoneElses ? [] : Object.entries(kept.texts);
    const others = texts
      .map(([id, text]) => [idOf(id), text] as const)
      .filter(([id]) => !this.#changed.has(id));
    this.#texts.value = new Map([...others, ...this.#texts.value]);
    this.keep();
  }

  /** Drop all texts: whoever wrote them is gone. */
  erase(): void {
    this.#changed.clear();
    this.#texts.value = new Map();
    write({ owner: null, texts: {} });
  }

  /** Copy what has changed, now. */
  keep(): void {
    if (!this.#isRestored || this.#changed.size === 0) return;
    clearTimeout(this.#timer);
    const { owner, texts } = read();
    // Somebody else has logged in since, in another tab: these texts are not theirs.
    if (owner !== null && owner !== this.#owner) return;
    for (const id of this.#changed) {
      delete texts[id ?? ""];
      const text = this.of(id);
      if (text !== "") texts[id ?? ""] = text;
    }
    this.#changed.clear();
    write({ owner: this.#owner, texts: newest(texts) });
  }
}

interface Kept {
  owner: Owner;
  texts: Texts;
}

function idOf(key: string): SessionId {
  return key === "" ? null : key;
}

/** Return the texts changed last, as far as there is room. */
function newest(texts: Texts): Texts {
  let room = maxChars;
  const kept = Object.entries(texts).filter(([, text]) => text.length <= maxChars);
  const firstKept = kept.findLastIndex(([, text]) => (room -= text.length) < 0) + 1;
  return Object.fromEntries(kept.slice(firstKept));
}

function read(): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(storageName) ?? "") as Kept;
    return { owner: kept.owner, texts: { ...kept.texts } };
  } catch {
    return { owner: null, texts: {} };
  }
}

function write(kept: Kept): void {
  try {
    localStorage.setItem(storageName, JSON.stringify(kept));
  } catch {
    // Storage that is full or forbidden keeps nothing; the texts last as long as the page.
  }
}
