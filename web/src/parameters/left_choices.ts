/**
 * Choices that were on their way to the server when the page was left, for the page that comes next.
 *
 * A reload asks for the conversation while the last note of it may still be under way. Kept in the
 * tab's own storage and taken out of it once: what the server has is the truth again after that.
 */

import { choicesFrom, type Choices } from "./choices";

const storageName = "chatserve:left-choices";

/** What was chosen, and what the server was last known to have. */
export interface LeftChoices {
  readonly chosen: Choices;
  readonly noted: Choices;
}

export function leaveChoices(sessionId: string, { chosen, noted }: LeftChoices): void {
  try {
    sessionStorage.setItem(storageName, JSON.stringify({ sessionId, chosen, noted }));
  } catch {
    // A browser that keeps nothing leaves it to the note that is under way.
  }
}

/** Return what was left of a conversation, once. */
export function takeLeftChoices(sessionId: string): LeftChoices | null {
  try {
    const left = JSON.parse(sessionStorage.getItem(storageName) ?? "{}") as Record<string, unknown>;
    if (left["sessionId"] !== sessionId) return null;
    sessionStorage.removeItem(storageName);
    return { chosen: choicesFrom(left["chosen"]), noted: choicesFrom(left["noted"]) };
  } catch {
    return null;
  }
}
