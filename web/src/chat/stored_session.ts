/** A conversation as it is stored: what was said in it, and what is being answered. */

import { signal } from "@preact/signals";

import type { LastSeen, StoredSession } from "../sessions/last_seen";
import { getResponse } from "../wire/api";
import type { WireConversation, WireResponse } from "../wire/protocol";
import { followedAnswer } from "./answer";
import { branchToLast, type AnswerMessage, type Message } from "./message_tree";
import { toMessages } from "./transcript";

export interface StoredMessages {
  session: WireConversation;
  messages: Message[];
  /** Answers in flight, each to be followed from its first event. */
  running: AnswerMessage[];
  /** When the copy was made that stands for a server that is away, or null. */
  seenAtMs: number | null;
}

/** Read a conversation with all its branches; `onEnd` gets the end of a long one before that. */
export async function readStored(
  lastSeen: LastSeen,
  sessionId: string,
  onEnd?: (end: StoredMessages) => void,
): Promise<StoredMessages> {
  const showEnd = async (end: StoredSession) => onEnd?.(await toStored(end, branchToLast));
  return toStored(await lastSeen.readSession(sessionId, onEnd && showEnd));
}

async function toStored(
  stored: StoredSession,
  pick = (messages: Message[]) => messages,
): Promise<StoredMessages> {
  const messages = pick(toMessages(stored.items));
  const newest = messages.at(-1)?.key ?? null;
  const responses = await Promise.all(inFlight(stored, messages).map(getResponse));
  const running = responses.map((response) => toRunning(response, newest));
  return { session: stored.session, messages, running, seenAtMs: stored.seenAtMs };
}

/** Return the ids of answers that are not among the messages; a copy tells nothing of them. */
function inFlight({ session, seenAtMs }: StoredSession, messages: readonly Message[]): string[] {
  if (seenAtMs !== null) return [];
  const ended = new Set(
    messages.map((message) => (message.kind === "answer" ? message.answer.value.responseId : null)),
  );
  return session.active_response_ids.filter((responseId) => !ended.has(responseId));
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
