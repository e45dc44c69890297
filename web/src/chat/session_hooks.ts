/** What an open session is told to ask with, and what it tells the page of. */

import type { WireConversation } from "../wire/protocol";
import type { OpenSession } from "./open_session";

export interface SessionHooks {
  /** The session is stored now and has an id. */
  onCreated(session: OpenSession, stored: WireConversation): void;
  /** There is no such session, or it is not the reader's; the server does not tell which. */
  onMissing(session: OpenSession): void;
  /** The session is shown as the server has it. */
  onRead(session: OpenSession): void;
  /** What the list shows of the session may have changed. */
  onChanged(session: OpenSession): void;
  /** The server has stored a message; null: an answer was asked for without one. */
  onAccepted(session: OpenSession, accepted: Accepted): void;
  /** A message ended before the server stored it; its text is nowhere but here. */
  onRefused(session: OpenSession, text: string): void;
}

/** What the server has taken. */
export interface Accepted {
  text: string | null;
  /** What it calls the messages, by their keys. */
  itemIds: Readonly<Record<string, string>>;
}

/** Which model answers, and with what sampling fields and prompt. */
export interface AnswerOptions {
  model: string;
  fields: Readonly<Record<string, unknown>>;
}
