/** The page without its views: one open session over a driven socket and a stubbed store. */

import { vi } from "vitest";

import type { Answer } from "../src/chat/answer";
import { AnswerFeed } from "../src/chat/answer_feed";
import { Connection } from "../src/wire/connection";
import { OpenSession } from "../src/chat/open_session";
import type { AnswerOptions } from "../src/chat/session_hooks";
import { LastSeen } from "../src/sessions/last_seen";
import type { AnswerEvent, ClientMessage } from "../src/wire/protocol";
import { FakeSocket, fakeBrowser, fakeStore, type FakeStore } from "./fakes";

export const options: AnswerOptions = { model: "tiny", fields: { max_output_tokens: 1024 } };

type Sent<T extends ClientMessage["type"]> = Extract<ClientMessage, { type: T }>;

export class Harness {
  readonly sockets: FakeSocket[] = [];
  readonly store: FakeStore;
  readonly connection: Connection;
  /** The texts of messages that were refused, and of those that were taken, in order. */
  readonly refused: string[] = [];
  readonly accepted: (string | null)[] = [];
  readonly lastSeen = new LastSeen();
  session: OpenSession;
  readonly #feed: AnswerFeed;

  constructor() {
    fakeBrowser();
    this.store = fakeStore();
    void this.lastSeen.belongTo("default/local");
    this.#feed = new AnswerFeed(() => this.connection);
    this.connection = new Connection(() => this.#openSocket(), {
      onLive: () => this.#feed.onLive(),
      onEvent: (event) => this.#feed.onEvent(event),
    });
    this.connection.connect();
    this.session = this.makeSession();
  }

  end(): void {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  }

  makeSession(): OpenSession {
    return new OpenSession(this.#feed, this.lastSeen, {
      onCreated: () => undefined,
      onMissing: () => undefined,
      onRead: () => undefined,
      onChanged: () => undefined,
      onAccepted: (_session, { text }) => this.accepted.push(text),
      onRefused: (_session, text) => this.refused.push(text),
    });
  }

  socket(): FakeSocket {
    return this.sockets.at(-1)!;
  }

  async say(text: string): Promise<void> {
    await this.session.send(text, options);
    await this.settle();
  }

  async receive(events: readonly AnswerEvent[], streamId = this.lane()): Promise<void> {
    for (const event of events) this.socket().receive({ ...event, stream_id: streamId });
    await this.settle();
  }

  async reconnect(): Promise<void> {
    this.socket().drop();
    await vi.advanceTimersByTimeAsync(1_000);
    this.socket().accept();
    await this.settle();
  }

  /** Let promises and the next frame of a hidden tab run. */
  async settle(): Promise<void> {
    await vi.advanceTimersByTimeAsync(300);
  }

  lastAnswer(): Answer {
    const entry = this.session.entries.value.at(-1);
    if (entry?.kind !== "answer") throw new Error("the last entry is no answer");
    return entry.answer.value;
  }

  /** All messages of one type, over all sockets. */
  sent<T extends ClientMessage["type"]>(type: T): Sent<T>[] {
    const messages = this.sockets.flatMap((each) => each.sent);
    return messages.filter((message): message is Sent<T> => message.type === type);
  }

  /** The lane of the turn that was created last. */
  lane(): string {
    return this.sent("response.create").at(-1)!.stream_id;
  }

  #openSocket(): WebSocket {
    this.sockets.push(new FakeSocket());
    return this.socket() as unknown as WebSocket;
  }
}
