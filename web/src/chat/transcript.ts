/**
 * A session's messages as the page shows them: what was stored, turned into entries.
 *
 * The first system message is no entry; it stands above the transcript.
 */

import { signal, type Signal } from "@preact/signals";

import { phaseOfIncomplete, promptOf, storedAnswer, toAnswerError, type Answer, type Phase } from "./answer";
import type { WireItem } from "../wire/protocol";

export interface UserEntry {
  kind: "user";
  key: string;
  text: string;
}

export interface AnswerEntry {
  kind: "answer";
  key: string;
  answer: Signal<Answer>;
}

export type Entry = UserEntry | AnswerEntry;

export interface Transcript {
  systemPrompt: string;
  entries: Entry[];
}

export function toTranscript(items: readonly WireItem[]): Transcript {
  const transcript: Transcript = { systemPrompt: "", entries: [] };
  for (const item of items) {
    if (item.type !== "message") continue;
    if (item.role === "user") {
      transcript.entries.push({ kind: "user", key: item.id, text: textOf(item) });
    } else if (item.role === "assistant") {
      const answer = signal(toAnswer(item));
      transcript.entries.push({ kind: "answer", key: item.id, answer });
    } else if (transcript.systemPrompt === "") {
      transcript.systemPrompt = textOf(item);
    }
  }
  return transcript;
}

/** Return whether the stored transcript already has the answer with this id. */
export function hasAnswer(entries: readonly Entry[], responseId: string): boolean {
  return entries.some(
    (entry) => entry.kind === "answer" && entry.answer.value.responseId === responseId,
  );
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
