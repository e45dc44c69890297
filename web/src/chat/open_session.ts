/**
 * The conversation on the screen: its messages, the answers in flight, and what the reader can do.
 *
 * Owns the tree of messages of one conversation. A new chat is an open session without an id; the id
 * comes with the first message, since nothing is stored before there is something to store. An open
 * session outlives the reader's look at another one while its answer runs.
 */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";

import { t } from "../i18n/catalogue";
import { newId } from "../ids";
import { SessionParameters } from "../parameters/session_parameters";
import type { LastSeen } from "../sessions/last_seen";
import { addItem, createSession, deleteBranch } from "../wire/api";
import { isSettled, isUnstored, newAnswer, type Answer } from "./answer";
import type { AnswerFeed, Followed, FollowedHooks } from "./answer_feed";
import type { Entry } from "./entries";
import { codeOf, isGone, isMissing, messageOf, type LoadState } from "./load_state";
import { ShownMessages } from "./shown_messages";
import type { AnswerOptions, SessionHooks } from "./session_hooks";
import { readStored, type StoredMessages } from "./stored_session";
import { toTitle } from "./title";
import { toMessages } from "./transcript";

/** A place to answer from: after a message, with something said or with nothing new. */
interface Ask {
  parentKey: string | null;
  text: string | null;
  continues: boolean;
}

export class OpenSession {
  /** What this page calls it, also before it is stored. */
  readonly key = newId();
  readonly id = signal<string | null>(null);
  readonly title = signal("");
  /** What a new chat will begin with, or what a stored one began with. */
  readonly systemPrompt = signal("");
  /** The answer that was asked for last on this page, by its key. */
  readonly asked = signal<string | null>(null);
  readonly parameters = new SessionParameters();
  readonly load: Signal<LoadState> = signal({ kind: "ready" });
  /** The message that the reader asked to see, by its key. */
  readonly target = signal<string | null>(null);
  /** The message that the reader is saying otherwise, by its key. */
  readonly editing = signal<string | null>(null);
  readonly entries: ReadonlySignal<readonly Entry[]>;
  /** Whether messages that come before the entries are still on their way. */
  readonly hasEarlier = signal(false);
  /** The last answer of the branch that is shown, while it runs. */
  readonly running: ReadonlySignal<ReadonlySignal<Answer> | null>;
  readonly #messages = new ShownMessages();
  /** Where the server has which message. */
  readonly places: Pick<ShownMessages, "placeOf" | "hasStored"> = this.#messages;
  /** When this browser saw what is shown, while the server is away; null: the server told it. */
  readonly seenAtMs = signal<number | null>(null);
  readonly #feed: AnswerFeed;
  readonly #lastSeen: LastSeen;
  readonly #hooks: SessionHooks;
  readonly #followed = new Map<string, Followed>();
  /** The session was stored for a message that the server has not accepted yet. */
  #holdsNothing = false;

  constructor(feed: AnswerFeed, lastSeen: LastSeen, hooks: SessionHooks) {
    this.#feed = feed;
    this.#lastSeen = lastSeen;
    this.#hooks = hooks;
    this.entries = this.#messages.entries;
    this.running = computed(() => {
      const last = this.#messages.path.value.at(-1);
      return last?.kind === "answer" && !isSettled(last.answer.value) ? last.answer : null;
    });
  }

  /** Show a stored session, and go on with its answers in flight. */
  async open(sessionId: string): Promise<void> {
    this.id.value = sessionId;
    this.load.value = { kind: "loading" };
    try {
      const showEnd = (end: StoredMessages) => this.#showEnd(end);
      this.#show(await readStored(this.#lastSeen, sessionId, showEnd), new Set());
      if (this.target.value !== null) this.choose(this.target.value);
      this.load.value = { kind: "ready" };
    } catch (error) {
      if (isMissing(codeOf(error))) this.#miss();
      // The end stays on the screen; the rest is asked for again when it is looked for changes.
      else if (!this.hasEarlier.value) this.load.value = { kind: "failed", message: messageOf(error) };
    }
  }

  /** Show what was written elsewhere since; the reader stays on the branch they look at. */
  async catchUp(): Promise<void> {
    const sessionId = this.id.value;
    if (sessionId === null || this.load.value.kind !== "ready") return;
    const expected = this.#messages.expected();
    try {
      const stored = await readStored(this.#lastSeen, sessionId);
      // What this browser kept is older than what is shown.
      if (stored.seenAtMs === null && this.id.value === sessionId) this.#show(stored, expected);
    } catch (error) {
      if (isMissing(codeOf(error)) && this.id.value === sessionId) this.#miss();
    }
  }

  /** Say something at the end of the branch that is shown; refused while its answer runs. */
  async send(text: string, options: AnswerOptions): Promise<void> {
    if (this.running.value !== null) return;
    this.#dropUnstored();
    await this.#ask({ parentKey: this.#messages.lastKey, text, continues: false }, options);
  }

  /** Say something else in the place of a message: a branch next to it. */
  async rewrite(key: string, text: string, options: AnswerOptions): Promise<void> {
    const message = this.#messages.get(key);
    if (message === undefined) return;
    if (message.kind === "user") {
      await this.#ask({ parentKey: message.parentKey, text, continues: false }, options);
    } else {
      await this.#rewriteAnswer(message.parentKey, text);
    }
  }

  /** Have a message answered once more: a branch next to the answer that it has. */
  async regenerate(key: string, options: AnswerOptions): Promise<void> {
    const message = this.#messages.get(key);
    if (message === undefined) return;
    await this.#ask({ parentKey: message.parentKey, text: null, continues: false }, options);
  }

  /** Let an answer that was cut or stopped go on. */
  async continueAnswer(key: string, options: AnswerOptions): Promise<void> {
    await this.#ask({ parentKey: key, text: null, continues: true }, options);
  }

  /** Try once more what the last answer failed at. */
  async retry(options: AnswerOptions): Promise<void> {
    const text = this.unstoredMessage();
    const last = this.#messages.lastKey;
    if (text !== null) await this.send(text, options);
    else if (last !== null) await this.regenerate(last, options);
  }

  stop(): void {
    const last = this.#messages.lastKey;
    const followed = last === null ? undefined : this.#followed.get(last);
    if (followed !== undefined) this.#feed.stop(followed);
  }

  /** Show the branch that goes through a message. */
  choose(key: string): void {
    this.#messages.choose(key);
  }

  /** Show a message, on whichever branch it is, as soon as it is there. */
  goTo(itemId: string): void {
    this.target.value = itemId;
    if (this.#messages.get(itemId) !== undefined) this.choose(itemId);
  }

  /** Show the message before or after one among those that stand in its place. */
  chooseSibling({ siblings, key }: Entry, by: -1 | 1): void {
    const sibling = siblings[siblings.indexOf(key) + by];
    if (sibling !== undefined) this.choose(sibling);
  }

  /**
   * Take a message and what follows it off the screen, and stop the answers among them; return how
   * many messages these are.
   */
  hide(key: string): number {
    for (const message of this.#messages.branch(key)) {
      const followed = this.#followed.get(message.key);
      if (followed !== undefined) this.#feed.stop(followed);
    }
    return this.#messages.hide(key);
  }

  unhide(key: string): void {
    this.#messages.unhide(key);
  }

  /** Delete a message and what follows it for good. */
  async delete(key: string): Promise<void> {
    const sessionId = this.id.value;
    const itemId = this.#messages.get(key)?.itemId ?? null;
    if (sessionId !== null && itemId !== null) {
      await deleteBranch(sessionId, itemId).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
    }
    this.#messages.drop(key);
  }

  /** The text that was said last on the branch that is shown, or null. */
  lastMessage(): string | null {
    const said = this.#messages.path.value.findLast(({ kind }) => kind === "user");
    return said?.kind === "user" ? said.text : null;
  }

  /** The text that was said last, if it has come to nothing; else null. */
  unstoredMessage(): string | null {
    const last = this.#messages.path.value.at(-1);
    const hasFailed = last?.kind === "answer" && isUnstored(last.answer.value);
    return hasFailed ? this.lastMessage() : null;
  }

  /** What the server calls a message; null while it does not have it. */
  itemIdOf(key: string): string | null {
    return this.#messages.get(key)?.itemId ?? null;
  }

  /** What a message is called: by the server, or else by this page. */
  nameOf(key: string): string {
    return this.itemIdOf(key) ?? key;
  }

  /** Become a new chat again if nothing was ever stored in the session; return the id given up. */
  withdraw(): string | null {
    if (!this.#holdsNothing) return null;
    const sessionId = this.id.value;
    this.#holdsNothing = false;
    this.id.value = null;
    this.title.value = "";
    this.parameters.onWithdrawn();
    return sessionId;
  }

  /** Stop following; what the server computes goes on without this page. */
  close(): void {
    for (const followed of this.#followed.values()) this.#feed.release(followed);
    this.#followed.clear();
  }

  /** There is nothing to go on with any more, and nobody to keep what is written here for. */
  #miss(): void {
    if (this.id.value === null) return;
    this.load.value = { kind: "missing" };
    this.#hooks.onMissing(this);
  }

  /** Show the end of a conversation while the rest is on its way; a target may be in the rest. */
  #showEnd(end: StoredMessages): void {
    if (this.target.value !== null) return;
    this.#show(end, new Set());
    this.hasEarlier.value = true;
    this.load.value = { kind: "ready" };
  }

  #show(stored: StoredMessages, expected: ReadonlySet<string>): void {
    const { session, messages, running, seenAtMs } = stored;
    this.hasEarlier.value = false;
    this.seenAtMs.value = seenAtMs;
    this.title.value = session.title;
    this.parameters.take(session);
    this.#messages.merge([...messages, ...running], expected);
    const first = messages.find(({ kind }) => kind === "system");
    this.systemPrompt.value = first?.kind === "system" ? first.text : "";
    for (const { key } of running) this.#followStored(key);
    if (seenAtMs === null) this.#hooks.onRead(this);
  }

  /** Follow an answer that somebody else asked for, unless that is done already. */
  #followStored(key: string): void {
    const message = this.#messages.get(key);
    if (message?.kind !== "answer" || this.#followed.has(key)) return;
    this.#followed.set(key, this.#feed.follow(message.answer, this.#hooksFor(key, null)));
  }

  async #ask({ parentKey, text, continues }: Ask, options: AnswerOptions): Promise<void> {
    const name = newId();
    const key = `answer-${name}`;
    const answer = signal(newAnswer(Date.now()));
    const user = { kind: "user", key: `user-${name}`, parentKey, itemId: null, text: text ?? "" } as const;
    const answering = text === null ? parentKey : user.key;
    const message = { kind: "answer", key, parentKey: answering, itemId: null, answer, continues } as const;
    const added = text === null ? [message] : [user, message];
    this.#messages.add(added);
    this.asked.value = key;
    const followed = this.#feed.follow(answer, this.#hooksFor(key, text));
    this.#followed.set(key, followed);
    const isNew = this.id.value === null;
    const sessionId = await this.#ensureStored(followed, text ?? "");
    if (sessionId === null) return;
    if (isSettled(answer.value)) {
      if (text !== null) this.#hooks.onRefused(this, text);
      return;
    }
    this.#feed.create(followed, {
      ...options.fields,
      model: options.model,
      conversation: sessionId,
      input: text ?? [],
      ...(!isNew && this.#parentField(parentKey)),
      ...(continues && { "chatserve:continue": true as const }),
    });
  }

  /** A parent that the server has not named yet is the newest message, which needs no name. */
  #parentField(parentKey: string | null): { "chatserve:parent_id"?: string } {
    const parentId = this.#messages.itemIdOf(parentKey);
    return parentId === null ? {} : { "chatserve:parent_id": parentId };
  }

  async #rewriteAnswer(parentKey: string | null, text: string): Promise<void> {
    const sessionId = this.id.value;
    const parentId = this.#messages.itemIdOf(parentKey);
    if (sessionId === null || parentId === null) return;
    const stored = toMessages(await addItem(sessionId, parentId, "assistant", text));
    const added = stored.map((message) => ({ ...message, parentKey }));
    this.#messages.add(added);
    this.#hooks.onAccepted(this, { text, itemIds: {} });
    this.#hooks.onChanged(this);
  }

  /** Return the session's id, storing the session first if it has none; null after a failure. */
  async #ensureStored(followed: Followed, text: string): Promise<string | null> {
    if (this.id.value !== null) return this.id.value;
    try {
      const metadata = this.parameters.toMetadata();
      const session = await createSession(this.systemPrompt.value.trim(), toTitle(text), metadata);
      this.id.value = session.id;
      this.title.value = session.title;
      this.parameters.onStored(session);
      this.#holdsNothing = true;
      this.#hooks.onCreated(this, session);
      return session.id;
    } catch (error) {
      this.#feed.fail(followed, codeOf(error), messageOf(error));
      return null;
    }
  }

  /** A turn that was never stored makes room for the next one; its text was given back. */
  #dropUnstored(): void {
    const last = this.#messages.path.value.at(-1);
    if (last?.kind !== "answer" || !isUnstored(last.answer.value)) return;
    const said = last.parentKey === null ? undefined : this.#messages.get(last.parentKey);
    const first = said?.kind === "user" && said.itemId === null ? said : last;
    this.#messages.drop(first.key);
  }

  /** `text` is the message; null for an answer without one of this page. */
  #hooksFor(key: string, text: string | null): FollowedHooks {
    return {
      onAccepted: ({ answer }) => this.#onAccepted(key, answer.value, text),
      onSettled: ({ answer }) => {
        this.#followed.delete(key);
        if (!isUnstored(answer.value)) this.#hooks.onChanged(this);
        else if (text !== null) this.#hooks.onRefused(this, text);
        // Nothing was said, and nothing came of it: the answer that was there is shown again.
        else if (answer.value.phase === "stopped") this.#messages.drop(key);
        if (isMissing(answer.value.error?.code) || this.load.value.kind === "missing") this.#miss();
      },
      onLost: (followed) => void this.#recover(key, followed),
    };
  }

  #onAccepted(key: string, { itemId, parentItemId }: Answer, text: string | null): void {
    const isFirst = this.#holdsNothing;
    this.#holdsNothing = false;
    const parentKey = this.#messages.get(key)?.parentKey ?? null;
    const itemIds = {
      ...(itemId !== null && { [key]: itemId }),
      ...(parentItemId !== null && parentKey !== null && { [parentKey]: parentItemId }),
    };
    this.#messages.name(itemIds);
    this.#hooks.onAccepted(this, { text, itemIds });
    this.#hooks.onChanged(this);
    // The system prompt was stored with the session, under an id that only the server knows.
    if (isFirst && this.systemPrompt.value.trim() !== "") void this.catchUp();
  }

  /**
   * Show what was stored of an answer that cannot be resumed. One that still runs would fail to
   * be resumed again, so it ends here.
   */
  async #recover(key: string, followed: Followed): Promise<void> {
    const sessionId = this.id.value;
    if (sessionId === null || this.#followed.get(key) !== followed) return;
    const { responseId } = followed.answer.value;
    try {
      const stored = await readStored(this.#lastSeen, sessionId);
      const isRunning = stored.running.some(({ answer }) => answer.value.responseId === responseId);
      if (isRunning || stored.seenAtMs !== null) {
        this.#feed.fail(followed, "not_resumable", t("answer.notFollowed"));
      } else {
        this.#feed.release(followed);
        this.#followed.delete(key);
        this.#messages.drop(key);
        this.#show(stored, new Set());
        this.#hooks.onChanged(this);
      }
    } catch (error) {
      this.#feed.fail(followed, codeOf(error), messageOf(error));
    }
  }
}
