/**
 * The page's state above a single session: what is open, what is served, how the line is.
 *
 * Wires connection, feed, list and sessions together and reacts to the address and the browser.
 * Views read its signals and call its methods; they hold no state that outlives them.
 */

import { computed, signal, type Signal } from "@preact/signals";

import { Belongings } from "./belongings";
import { AnswerFeed } from "./chat/answer_feed";
import { Connection } from "./wire/connection";
import { Drafts } from "./input/drafts";
import { roomFor } from "./input/message_size";
import { rescueOrphans } from "./input/orphans";
import { Unsent } from "./input/unsent";
import { plural, t } from "./i18n/catalogue";
import { Login } from "./login";
import { OpenSession } from "./chat/open_session";
import { dropLeftChoices, takeOverLeftChoices } from "./parameters/left_choices";
import { NewChat } from "./parameters/new_chat";
import { NextAnswer } from "./parameters/next_answer";
import { Offer } from "./parameters/offer";
import { Undo } from "./undo";
import { watchWaking } from "./waking";
import { deleteBranch } from "./wire/api";
import type { WireConversation } from "./wire/protocol";
import { Layout } from "./layout";
import { hashOf, placeOf, type Place } from "./router";
import type { Settings } from "./settings";
import { InStep } from "./sessions/in_step";
import { LastSeen } from "./sessions/last_seen";
import { finishRemovals, leaveRemoval, leftSessionIds, type LeftRemoval } from "./sessions/left_removals";
import { SessionImport } from "./sessions/session_import";
import { SessionList } from "./sessions/session_list";
import { SessionSearch } from "./sessions/session_search";

export class App {
  readonly connection: Connection;
  readonly lastSeen = new LastSeen();
  readonly list = new SessionList(this.lastSeen);
  readonly search = new SessionSearch();
  readonly importing = new SessionImport(() => void this.list.refresh());
  readonly login = new Login(
    () => this.#onLogOut(),
    () => this.#onOtherUser(),
  );
  readonly drafts = new Drafts();
  readonly unsent = new Unsent(this.drafts);
  readonly belongings = new Belongings(this.login, this.unsent, this.lastSeen);
  readonly offer: Offer = new Offer(this.login, () => this.next.model.value === null);
  readonly next = new NextAnswer(() => this.current.value.parameters.choices.value, this.offer);
  readonly layout = new Layout();
  readonly place = signal<Place>({ kind: "chat", sessionId: null, itemId: null });
  readonly current: Signal<OpenSession>;
  /** The reader has deleted the conversation on the screen; it may be had back for a moment. */
  readonly isDeleted = computed(() => {
    const { value: sessionId } = this.current.value.id;
    return sessionId !== null && this.list.isHidden(sessionId);
  });
  /** The first value that the persona lacks shall have the focus. */
  readonly asksForVariables = signal(false);
  /** The answer that the reader wants to see the figures of; null for the last one. */
  readonly inspected = signal<{ readonly key: string } | null>(null);
  /** The new chat on the screen stands for a conversation that the reader cannot open. */
  readonly hasMissed = signal(false);
  readonly undo = new Undo();
  readonly #feed: AnswerFeed;
  readonly #inStep: InStep;
  readonly #newChat: NewChat;
  /** Sessions whose answer runs while the reader looks elsewhere. */
  readonly #background = new Set<OpenSession>();

  constructor(
    openSocket: () => WebSocket,
    readonly settings: Settings,
  ) {
    this.#feed = new AnswerFeed(() => this.connection);
    this.connection = new Connection(openSocket, {
      onLive: () => this.#onLive(),
      onEvent: (event) => this.#feed.onEvent(event),
    });
    this.#newChat = new NewChat(this.drafts, () => this.#makeSession());
    this.current = signal(this.#newChat.session);
    this.#inStep = new InStep(this.lastSeen, this.list, {
      current: () => this.current.value,
      isLive: () => this.connection.isLive,
      onOtherUser: () => this.belongings.startOver(),
    });
  }

  /** Begin to listen to the browser, connect, and show what the address names. */
  start(): void {
    window.addEventListener("hashchange", () => this.#route());
    window.addEventListener("offline", () => this.connection.goOffline());
    window.addEventListener("pagehide", () => this.#onHide());
    window.addEventListener("storage", (event) => this.unsent.follow(event));
    watchWaking(() => this.#onWake());
    this.#inStep.start();
    takeOverLeftChoices();
    this.belongings.start();
    for (const sessionId of leftSessionIds()) this.list.hide(sessionId);
    this.#route();
    this.connection.connect();
    void this.#identify();
  }

  /** Answer with a persona, and ask for what it needs. */
  choosePersona(name: string | null): void {
    this.current.value.parameters.choosePersona(name);
    this.askForVariables();
  }

  /** Show where the values that the persona needs are given, if there are any to be given. */
  askForVariables(): void {
    this.asksForVariables.value = this.next.isVariableMissing.value;
    // A new chat has the fields on the page.
    const hasFields = this.current.value.entries.value.length === 0;
    if (this.next.isVariableMissing.value && !hasFields) this.layout.showInspector();
  }

  /** Show the inspector on one answer. */
  inspect(key: string): void {
    this.inspected.value = { key };
    this.layout.showInspector();
  }

  newChat(): void {
    location.hash = hashOf(null);
    this.#open(null);
  }

  /** Delete a session unless the reader takes that back. */
  deleteSession(sessionId: string, title: string): void {
    this.list.hide(sessionId);
    if (this.current.value.id.value === sessionId) this.newChat();
    this.undo.add({
      words: t("list.deleted", { title }),
      target: { sessionId, itemId: null },
      restore: () => this.list.unhide(sessionId),
      commit: () => this.#removeSession(sessionId),
    });
  }

  async renameSession(sessionId: string, title: string): Promise<void> {
    await this.list.rename(sessionId, title);
    this.#inStep.tell({ kind: "changed", sessionId });
  }

  async pinSession(sessionId: string, pinned: boolean): Promise<void> {
    await this.list.pin(sessionId, pinned);
    this.#inStep.tell({ kind: "changed", sessionId });
  }

  async #removeSession(sessionId: string): Promise<void> {
    await this.list.remove(sessionId);
    this.#leaveNothingOf(sessionId);
    if (this.current.value.id.value === sessionId) this.#leave();
    for (const session of this.#background) {
      if (session.id.value === sessionId) this.#forget(session);
    }
  }

  #forget(session: OpenSession): void {
    this.#background.delete(session);
    session.close();
  }

  async logOut(): Promise<void> {
    // Afterwards nobody may delete what was to be deleted.
    this.undo.finish();
    await this.login.logOut();
  }

  /** Send what stands in the composer. */
  async sendDraft(): Promise<void> {
    const { id, running, places } = this.current.value;
    const isFree = this.next.options.value !== null && running.value === null;
    if (!isFree || this.unsent.isLoading.value || this.unsent.isEmpty(id.value)) return;
    await this.send(this.unsent.take(id.value, places.placeOf(null)));
  }

  /** Attach files to the message in the composer. */
  async attachFiles(files: Iterable<File>): Promise<void> {
    const { value: maxBytes } = this.connection.maxMessageBytes;
    const room = maxBytes === null ? null : roomFor(maxBytes);
    await this.unsent.attachFiles(this.current.value.id.value, files, room);
  }

  async send(text: string): Promise<void> {
    const options = this.next.options.value;
    if (options !== null) await this.current.value.send(text, options);
  }

  async retry(): Promise<void> {
    const options = this.next.options.value;
    const session = this.current.value;
    const message = session.unstoredMessage();
    if (options === null) return;
    if (message !== null) this.unsent.takeAgain(session.id.value, message);
    await session.retry(options);
  }

  /** Say a message otherwise; what was written stays in its editor until the server has it. */
  async rewrite(key: string, text: string): Promise<void> {
    const options = this.next.options.value;
    if (options === null) return;
    try {
      await this.current.value.rewrite(key, text, options);
    } catch (error) {
      this.unsent.problem.value = error instanceof Error ? error.message : String(error);
    }
  }

  async regenerate(key: string): Promise<void> {
    const options = this.next.options.value;
    if (options !== null) await this.current.value.regenerate(key, options);
  }

  async continueAnswer(key: string): Promise<void> {
    const options = this.next.options.value;
    if (options !== null) await this.current.value.continueAnswer(key, options);
  }

  /** Delete a message with what follows it, unless the reader takes that back. */
  deleteMessage(key: string): void {
    const session = this.current.value;
    const sessionId = session.id.value;
    const itemId = session.itemIdOf(key);
    this.undo.add({
      words: plural("message.deleted", session.hide(key)),
      target: sessionId === null || itemId === null ? null : { sessionId, itemId },
      restore: () => session.unhide(key),
      commit: () => session.delete(key),
    });
  }

  #route(): void {
    const place = placeOf(location.hash);
    this.place.value = place;
    if (place.kind !== "chat") return;
    if (place.sessionId !== this.current.value.id.value) this.#open(place.sessionId);
    if (place.itemId !== null) this.current.value.goTo(place.itemId);
  }

  #open(sessionId: string | null): void {
    const previous = this.current.value;
    this.hasMissed.value = false;
    const next = sessionId === null ? this.#newChat.after(previous) : this.#stored(sessionId);
    this.current.value = next;
    if (previous === next) return;
    if (previous.running.value !== null) this.#background.add(previous);
    else previous.close();
  }

  #stored(sessionId: string): OpenSession {
    const running = [...this.#background].find((session) => session.id.value === sessionId);
    if (running !== undefined) {
      this.#background.delete(running);
      return running;
    }
    const session = this.#makeSession();
    void session.open(sessionId);
    return session;
  }

  #makeSession(): OpenSession {
    return new OpenSession(this.#feed, this.lastSeen, {
      onCreated: (session, stored) => this.#onCreated(session, stored),
      onMissing: (session) => this.#onMissing(session),
      onRead: ({ id, places }) => this.unsent.dropArrived(id.value, places),
      onChanged: (session) => this.#onChanged(session),
      onAccepted: ({ id }, accepted) => this.unsent.onAccepted(id.value, accepted),
      onRefused: (session, text) => this.#onRefused(session, text),
    });
  }

  #onOtherUser(): void {
    this.#inStep.tell({ kind: "otherUser" });
    this.belongings.startOver();
  }

  #onCreated(session: OpenSession, stored: WireConversation): void {
    this.list.add(stored);
    this.#inStep.tell({ kind: "changed", sessionId: stored.id });
    this.unsent.redirect(session.lastMessage() ?? "", stored.id);
    if (session !== this.current.value) return;
    this.#readdress(stored.id);
    this.unsent.readdress(null, stored.id);
  }

  /** What was written in a conversation that is not there is not lost. */
  #onMissing(session: OpenSession): void {
    const { value: sessionId } = session.id;
    if (sessionId !== null) this.unsent.rescue(sessionId);
    if (session !== this.current.value) return;
    this.#leave();
    // Coming back to the address asks for it anew.
    this.#background.delete(session);
    void this.list.refresh();
  }

  /** The address on the screen leads nowhere: it is none to come back to. */
  #leave(): void {
    this.#readdress(null);
    this.#open(null);
    this.hasMissed.value = true;
  }

  /** The conversation on the screen has got or lost its id; another view keeps its address. */
  #readdress(sessionId: string | null): void {
    if (this.place.value.kind === "chat") history.replaceState(null, "", hashOf(sessionId));
  }

  /** Nothing of a refused message is lost, and nothing of it is left behind. */
  #onRefused(session: OpenSession, text: string): void {
    this.#background.delete(session);
    if (session === this.current.value) this.#withdraw(session);
    this.unsent.onRefused(session.id.value, text);
    // What was asked for may be gone.
    this.offer.refresh();
  }

  #withdraw(session: OpenSession): void {
    const sessionId = session.withdraw();
    if (sessionId === null) return;
    this.#readdress(null);
    this.unsent.readdress(sessionId, null);
    this.#removeSession(sessionId).catch(() => this.list.refresh());
  }

  #leaveNothingOf(sessionId: string): void {
    this.unsent.clearSession(sessionId);
    void this.lastSeen.forget(sessionId);
    this.#inStep.tell({ kind: "deleted", sessionId });
  }

  /** The address of whoever has logged out is not the next one's. */
  async #onLogOut(): Promise<void> {
    history.replaceState(null, "", hashOf(null));
    await this.belongings.leaveNothing();
  }

  /** Ask whose the page is, and for the rest only then: without a key all of it would be refused. */
  async #identify(): Promise<void> {
    if (!(await this.belongings.identify())) return;
    this.#newChat.restore();
    const { id, places } = this.current.value;
    this.unsent.dropArrived(id.value, places);
    this.offer.refresh();
    // A list that is read before a removal is made would show again what was removed.
    await this.list.refresh();
    const { value: owner } = this.login.owner;
    const hasRemoved = await finishRemovals(owner, (removal) => this.#finishRemoval(removal));
    if (hasRemoved) await this.#inStep.check();
    await rescueOrphans(this.unsent);
  }

  async #finishRemoval({ sessionId, itemId }: LeftRemoval): Promise<void> {
    if (itemId !== null) return deleteBranch(sessionId, itemId);
    this.list.hide(sessionId);
    await this.#removeSession(sessionId);
  }

  #onChanged(session: OpenSession): void {
    if (session.running.value === null) this.#background.delete(session);
    void this.list.refresh();
    const sessionId = session.id.value;
    if (sessionId !== null) this.#inStep.tell({ kind: "changed", sessionId });
    this.#inStep.checkSoon();
  }

  #onHide(): void {
    if (this.belongings.isLeaving) return;
    const removed = this.undo.offer.value?.target ?? null;
    if (removed !== null) leaveRemoval(this.login.owner.value, removed);
    this.undo.finish();
    this.drafts.keep();
    if (!this.login.isNeeded.value) this.current.value.parameters.leave();
  }

  #onLive(): void {
    this.#feed.onLive();
    void this.#inStep.check();
    // Somebody else may have logged in while this page was cut off or asleep.
    void this.#identify();
  }

  #onWake(): void {
    dropLeftChoices();
    this.connection.wake();
    void this.list.refresh();
    void this.#inStep.check();
  }
}
