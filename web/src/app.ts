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
import { Unsent } from "./input/unsent";
import { plural, t } from "./i18n/catalogue";
import { Login } from "./login";
import { OpenSession, type AnswerOptions } from "./chat/open_session";
import { dropLeftChoices, takeOverLeftChoices } from "./parameters/left_choices";
import { obstacleOfChoices } from "./parameters/obstacle";
import { Offer } from "./parameters/offer";
import { promptField } from "./parameters/personas";
import { fieldsToSend } from "./parameters/sampling";
import { Undo } from "./undo";
import { watchWaking } from "./waking";
import type { WireConversation } from "./wire/protocol";
import { Layout } from "./layout";
import { hashOf, placeOf, type Place } from "./router";
import type { Settings } from "./settings";
import { InStep } from "./sessions/in_step";
import { LastSeen } from "./sessions/last_seen";
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
  readonly belongings = new Belongings(this.login, this.drafts, this.lastSeen);
  readonly offer = new Offer(this.login, () => this.model.value === null);
  readonly unsent = new Unsent(this.drafts);
  readonly layout = new Layout();
  readonly place = signal<Place>({ kind: "chat", sessionId: null, itemId: null });
  readonly current: Signal<OpenSession>;
  /** The model of the conversation on the screen; none while the one that was chosen is away. */
  readonly model = computed(() => {
    const { value: models } = this.offer.models;
    const { model: chosen } = this.current.value.parameters.choices.value;
    return (chosen === null ? models[0] : models.find(({ id }) => id === chosen)) ?? null;
  });
  /** Why the conversation cannot go on as the reader chose, in a sentence; null while it can. */
  readonly choiceProblem = computed(() => {
    const { choices } = this.current.value.parameters;
    const { models, personas } = this.offer;
    return obstacleOfChoices(choices.value, models.value, personas.list.value);
  });
  /** What the next answer is asked for with; null while it cannot be asked for. */
  readonly options = computed<AnswerOptions | null>(() => {
    const { value: model } = this.model;
    if (model === null || this.choiceProblem.value !== null) return null;
    const { persona, fields } = this.current.value.parameters.choices.value;
    const prompt = persona && promptField(persona, this.offer.personas.find(persona.name));
    const sampling = fieldsToSend(model["chatserve:sampling"] ?? [], fields);
    return { model: model.id, fields: { ...sampling, ...(prompt && { prompt }) } };
  });
  /** The answer that the reader wants to see the figures of; null for the last one. */
  readonly inspected = signal<{ readonly key: string } | null>(null);
  /** The new chat on the screen stands for a conversation that the reader cannot open. */
  readonly hasMissed = signal(false);
  readonly undo = new Undo();
  readonly #feed: AnswerFeed;
  readonly #inStep: InStep;
  /** Sessions whose answer runs while the reader looks elsewhere. */
  readonly #background = new Set<OpenSession>();
  /** Until the connection is there for the first time. */
  #isStarting = true;

  constructor(
    openSocket: () => WebSocket,
    readonly settings: Settings,
  ) {
    this.#feed = new AnswerFeed(() => this.connection);
    this.connection = new Connection(openSocket, {
      onLive: () => this.#onLive(),
      onEvent: (event) => this.#feed.onEvent(event),
      onRefused: (error) => this.login.noteRefusal(error),
    });
    this.current = signal(this.#makeSession());
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
    watchWaking(() => this.#onWake());
    this.#inStep.start();
    takeOverLeftChoices();
    this.belongings.start();
    this.#route();
    this.connection.connect();
    void this.#identify();
    void this.list.refresh();
    this.offer.refresh();
  }

  /** Answer with a persona; where it asks for values, show where they are given. */
  choosePersona(name: string | null): void {
    const session = this.current.value;
    session.parameters.choosePersona(name);
    const isAsking = session.entries.value.length > 0 && this.choiceProblem.value !== null;
    if (isAsking) this.layout.showInspector();
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
    const sessionId = this.current.value.id.value;
    const message = this.unsent.messageOf(sessionId);
    if (this.options.value === null || this.unsent.isEmpty(sessionId)) return;
    this.unsent.clear(sessionId);
    await this.send(message);
  }

  /** Attach files to the message in the composer. */
  async attachFiles(files: Iterable<File>): Promise<void> {
    const { value: maxBytes } = this.connection.maxMessageBytes;
    const room = maxBytes === null ? null : roomFor(maxBytes);
    await this.unsent.attachFiles(this.current.value.id.value, files, room);
  }

  async send(text: string): Promise<void> {
    const options = this.options.value;
    if (options !== null) await this.current.value.send(text, options);
  }

  async retry(): Promise<void> {
    const options = this.options.value;
    const session = this.current.value;
    const sessionId = session.id.value;
    if (options === null) return;
    // The message that the refusal put back is about to be sent; a different one stays.
    if (this.unsent.messageOf(sessionId) === session.lastMessage()) this.unsent.clear(sessionId);
    await session.retry(options);
  }

  async rewrite(key: string, text: string): Promise<void> {
    const options = this.options.value;
    if (options !== null) await this.current.value.rewrite(key, text, options);
  }

  async regenerate(key: string): Promise<void> {
    const options = this.options.value;
    if (options !== null) await this.current.value.regenerate(key, options);
  }

  async continueAnswer(key: string): Promise<void> {
    const options = this.options.value;
    if (options !== null) await this.current.value.continueAnswer(key, options);
  }

  /** Delete a message with what follows it, unless the reader takes that back. */
  deleteMessage(key: string): void {
    const session = this.current.value;
    this.undo.add({
      words: plural("message.deleted", session.hide(key)),
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
    const next = sessionId === null ? this.#chatAfter(previous) : this.#stored(sessionId);
    this.current.value = next;
    if (previous.running.value !== null) this.#background.add(previous);
    else previous.close();
  }

  /** Return a new chat; it begins as the last one did, so that it shares what is computed. */
  #chatAfter(previous: OpenSession): OpenSession {
    const session = this.#makeSession();
    session.systemPrompt.value = previous.systemPrompt.value;
    session.parameters.beginAs(previous.parameters);
    return session;
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
      onChanged: (session) => this.#onChanged(session),
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
    if (session !== this.current.value) return;
    this.#readdress(stored.id);
    this.unsent.move(null, stored.id);
  }

  /** An address that leads nowhere is none to come back to; what was written there is not lost. */
  #onMissing(session: OpenSession): void {
    if (session !== this.current.value) return;
    this.#readdress(null);
    this.unsent.move(session.id.value, null);
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
    this.unsent.putBack(session.id.value, text);
    // What was asked for may be gone.
    this.offer.refresh();
  }

  #withdraw(session: OpenSession): void {
    const sessionId = session.withdraw();
    if (sessionId === null) return;
    this.#readdress(null);
    this.unsent.move(sessionId, null);
    this.#removeSession(sessionId).catch(() => this.list.refresh());
  }

  #leaveNothingOf(sessionId: string): void {
    this.unsent.clear(sessionId);
    void this.lastSeen.forget(sessionId);
    this.#inStep.tell({ kind: "deleted", sessionId });
  }

  /** The address of whoever has logged out is not the next one's. */
  async #onLogOut(): Promise<void> {
    history.replaceState(null, "", hashOf(null));
    await this.belongings.leaveNothing();
  }

  async #identify(): Promise<void> {
    if (await this.belongings.identify()) void this.offer.refreshPersonas();
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
    this.undo.finish();
    for (const session of [this.current.value, ...this.#background]) {
      for (const text of session.unaccepted()) this.unsent.putBack(session.id.value, text);
    }
    this.drafts.keep();
    if (!this.login.isNeeded.value) this.current.value.parameters.leave();
  }

  #onLive(): void {
    this.#feed.onLive();
    // What the start has just asked for is not asked for again, unless the server was away.
    const isJustAsked = this.#isStarting && this.list.problem.value === null;
    this.#isStarting = false;
    if (isJustAsked) return;
    this.offer.refresh();
    void this.list.refresh();
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
