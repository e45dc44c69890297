/**
 * The session on the screen: its messages, the answer in flight, and what the reader can do.
 *
 * Owns the transcript of one session. A new chat is an open session without an id; the id comes
 * with the first message, since nothing is stored before there is something to store. An open
 * session outlives the reader's look at another one while its answer runs.
 */

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";

import { followedAnswer, isSettled, isUnstored, newAnswer, type Answer } from "./answer";
import type { AnswerFeed, Followed, FollowedHooks } from "./answer_feed";
import { ApiError, createSession, getSession, listItems } from "../wire/api";
import { t } from "../i18n/catalogue";
import { newId } from "../ids";
import type { WireConversation } from "../wire/protocol";
import { toTitle } from "./title";
import { hasAnswer, toTranscript, type Entry, type Transcript } from "./transcript";

export type LoadState =
  | { kind: "loading" }
  | { kind: "ready" }
  | { kind: "missing" }
  | { kind: "failed"; message: string };

export interface SessionHooks {
  /** The session is stored now and has an id. */
  onCreated(session: OpenSession, stored: WireConversation): void;
  /** What the list shows of the session may have changed. */
  onChanged(session: OpenSession): void;
  /** A message ended before the server stored it; its text is nowhere but here. */
  onRefused(session: OpenSession, text: string): void;
}

export class OpenSession {
  readonly id = signal<string | null>(null);
  readonly title = signal("");
  readonly systemPrompt = signal("");
  readonly entries: Signal<readonly Entry[]> = signal([]);
  readonly load: Signal<LoadState> = signal({ kind: "ready" });
  /** The last answer while it runs. */
  readonly running: ReadonlySignal<Signal<Answer> | null>;
  readonly #feed: AnswerFeed;
  readonly #hooks: SessionHooks;
  #followed: Followed | null = null;
  /** The session was stored for a message that the server has not accepted yet. */
  #holdsNothing = false;

  constructor(feed: AnswerFeed, hooks: SessionHooks) {
    this.#feed = feed;
    this.#hooks = hooks;
    this.running = computed(() => {
      const last = this.entries.value.at(-1);
      return last?.kind === "answer" && !isSettled(last.answer.value) ? last.answer : null;
    });
  }

  /** Show a stored session, and go on with its answer if one is in flight. */
  async open(sessionId: string): Promise<void> {
    this.id.value = sessionId;
    this.load.value = { kind: "loading" };
    try {
      const { session, transcript } = await fetchStored(sessionId);
      this.#show(session, transcript);
      this.load.value = { kind: "ready" };
    } catch (error) {
      this.load.value = toLoadState(error);
    }
  }

  /** Say something; refused while an answer runs. */
  async send(text: string, model: string): Promise<void> {
    if (this.running.value !== null) return;
    this.#dropUnstored();
    const hooks = this.#followedHooks(text);
    const followed = this.#feed.follow(newAnswer(Date.now()), hooks);
    this.#followed = followed;
    const key = newId();
    this.entries.value = [
      ...this.entries.value,
      { kind: "user", key: `user-${key}`, text },
      { kind: "answer", key: `answer-${key}`, answer: followed.answer },
    ];
    const sessionId = await this.#ensureStored(followed, text);
    if (sessionId === null) return;
    if (isSettled(followed.answer.value)) this.#hooks.onRefused(this, text);
    else this.#feed.create(followed, { model, conversation: sessionId, input: text });
  }

  stop(): void {
    if (this.#followed !== null) this.#feed.stop(this.#followed);
  }

  /** The text that `retry` would send, or null. */
  lastMessage(): string | null {
    const user = this.entries.value.at(-2);
    return user?.kind === "user" ? user.text : null;
  }

  /** Say the last message again. */
  async retry(model: string): Promise<void> {
    const text = this.lastMessage();
    if (text !== null) await this.send(text, model);
  }

  /** Become a new chat again if nothing was ever stored in the session; return the id given up. */
  withdraw(): string | null {
    if (!this.#holdsNothing) return null;
    const sessionId = this.id.value;
    this.#holdsNothing = false;
    this.id.value = null;
    this.title.value = "";
    return sessionId;
  }

  /** Stop following; what the server computes goes on without this page. */
  close(): void {
    if (this.#followed !== null) this.#feed.release(this.#followed);
  }

  #show(session: WireConversation, transcript: Transcript): void {
    this.title.value = session.title;
    this.systemPrompt.value = transcript.systemPrompt;
    const responseId = session.active_response_id;
    if (responseId === null || hasAnswer(transcript.entries, responseId)) {
      this.entries.value = transcript.entries;
      return;
    }
    const followed = this.#feed.follow(followedAnswer(responseId), this.#followedHooks(null));
    this.#followed = followed;
    const entry = { kind: "answer", key: responseId, answer: followed.answer } as const;
    this.entries.value = [...transcript.entries, entry];
  }

  /** Return the session's id, storing the session first if it has none; null after a failure. */
  async #ensureStored(followed: Followed, text: string): Promise<string | null> {
    if (this.id.value !== null) return this.id.value;
    try {
      const session = await createSession(this.systemPrompt.value.trim(), toTitle(text));
      this.id.value = session.id;
      this.title.value = session.title;
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
    const last = this.entries.value.at(-1);
    if (last?.kind !== "answer" || !isUnstored(last.answer.value)) return;
    this.entries.value = this.entries.value.slice(0, -2);
  }

  /** `text` is the message; null for an answer that somebody else asked for. */
  #followedHooks(text: string | null): FollowedHooks {
    return {
      onAccepted: () => {
        this.#holdsNothing = false;
        this.#hooks.onChanged(this);
      },
      onSettled: ({ answer }) => {
        if (text !== null && isUnstored(answer.value)) this.#hooks.onRefused(this, text);
        else this.#hooks.onChanged(this);
      },
      onLost: (followed) => void this.#recover(followed),
    };
  }

  /**
   * Show what was stored of an answer that cannot be resumed. One that still runs would fail to
   * be resumed again, so it ends here.
   */
  async #recover(followed: Followed): Promise<void> {
    const sessionId = this.id.value;
    if (sessionId === null || this.#followed !== followed) return;
    const { responseId } = followed.answer.value;
    try {
      const { session, transcript } = await fetchStored(sessionId);
      if (session.active_response_id === responseId) {
        this.#feed.fail(followed, "not_resumable", t("answer.notFollowed"));
      } else {
        this.#feed.release(followed);
        this.#show(session, transcript);
        this.#hooks.onChanged(this);
      }
    } catch (error) {
      this.#feed.fail(followed, codeOf(error), messageOf(error));
    }
  }
}

/** The order matters: an answer that ends in between is in the messages, not lost. */
async function fetchStored(
  sessionId: string,
): Promise<{ session: WireConversation; transcript: Transcript }> {
  const session = await getSession(sessionId);
  return { session, transcript: toTranscript(await listItems(sessionId)) };
}

function toLoadState(error: unknown): LoadState {
  if (error instanceof ApiError && error.status === 404) return { kind: "missing" };
  return { kind: "failed", message: messageOf(error) };
}

function codeOf(error: unknown): string {
  return error instanceof ApiError ? error.code : "unknown";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
