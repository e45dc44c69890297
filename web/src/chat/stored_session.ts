/** Reading a conversation from the server: what was said in it, and what is being answered. */

import { signal } from "@preact/signals";

import { getResponse, getSession, listItems } from "../wire/api";
import type { WireConversation, WireResponse } from "../wire/protocol";
import { followedAnswer } from "./answer";
import type { AnswerMessage, Message } from "./message_tree";
import { toMessages } from "./transcript";

export interface StoredSession {
  session: WireConversation;
  messages: Message[];
  /** Answers in flight, each to be followed from its first event. */
  running: AnswerMessage[];
}

/**
 * Read a conversation with all its branches.
 *
 * The order matters: an answer that ends in between is in the messages, not lost.
 */
export async function fetchStored(sessionId: string): Promise<StoredSession> {
  const session = await getSession(sessionId);
  const messages = toMessages(await listItems(sessionId));
  const ended = new Set(
    messages.map((message) => (message.kind === "answer" ? message.answer.value.responseId : null)),
  );
  const ids = session.active_response_ids.filter((responseId) => !ended.has(responseId));
  const responses = await Promise.all(ids.map(getResponse));
  const newest = messages.at(-1)?.key ?? null;
  return { session, messages, running: responses.map((each) => toRunning(each, newest)) };
}

function toRunning(response: WireResponse, newest: string | null): AnswerMessage {
  return {
    kind: "answer",
    key: response["chatserve:message_id"] ?? response.id,
    itemId: response["chatserve:message_id"] ?? null,
    parentKey: response["chatserve:parent_id"] ?? newest,
    answer: signal(followedAnswer(response.id)),
    continues: response["chatserve:continue"] ?? false,
  };
}
