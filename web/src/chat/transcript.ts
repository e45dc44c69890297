/** A conversation as the server stores it, turned into the messages of a tree. */

import { signal } from "@preact/signals";

import type { WireItem } from "../wire/protocol";
import { phaseOfIncomplete, promptOf, storedAnswer, toAnswerError, type Answer, type Phase } from "./answer";
import type { Message } from "./message_tree";

/** Return items, listed in the order of writing, as messages under their ids. */
export function toMessages(items: readonly WireItem[]): Message[] {
  return items.filter(({ type }) => type === "message").map(toMessage);
}

function toMessage(item: WireItem): Message {
  const place = { key: item.id, itemId: item.id, parentKey: item["chatserve:parent_id"] ?? null };
  if (item.role === "assistant") {
    const continues = item["chatserve:continues"] ?? false;
    return { kind: "answer", ...place, answer: signal(toAnswer(item)), continues };
  }
  return { kind: item.role === "user" ? "user" : "system", ...place, text: textOf(item) };
}

function textOf(item: WireItem): string {
  return item.content.map((part) => part.text).join("");
}

function toAnswer(item: WireItem): Answer {
  const usage = item["chatserve:usage"] ?? null;
  const phase = phaseOfItem(item);
  return storedAnswer({
    responseId: item["chatserve:response_id"] ?? null,
    phase,
    text: textOf(item),
    usage,
    timings: item["chatserve:timings"] ?? null,
    prompt: usage && promptOf(usage),
    error: phase === "failed" ? toAnswerError(item["chatserve:error"]) : null,
  });
}

function phaseOfItem(item: WireItem): Phase {
  if (item["chatserve:error"] != null) return "failed";
  if (item.status === "incomplete") return phaseOfIncomplete(item["chatserve:incomplete_reason"]);
  return "completed";
}
