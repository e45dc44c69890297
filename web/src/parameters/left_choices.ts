/**
 * Choices that were on their way to the server when the page was left, for the page that comes next.
 *
 * A reload asks for the conversation while the last note of it may still be under way. Kept in the
 * tab's own storage only from one page to the next, which takes them out as it begins: whoever uses
 * the tab after that finds nothing there. They are used once: what the server has is the truth again
 * after that.
 */

import { readJson } from "../kept";
import { isObject } from "../shape";
import { choicesFrom, type Choices } from "./choices";

const storageName = "chatserve:left-choices";

/** What was chosen, and what the server was last known to have. */
export interface LeftChoices {
  readonly chosen: Choices;
  readonly noted: Choices;
}

/** What the page before this one has left. */
let left: Record<string, unknown> = {};

/** Take over what was left, out of the tab's storage. */
export function takeOverLeftChoices(): void {
  const found = readJson(() => sessionStorage, storageName);
  left = isObject(found) ? found : {};
  dropLeftChoices();
}

/** Leave nothing after all: the page that was left has come back itself. */
export function dropLeftChoices(): void {
  try {
    sessionStorage.removeItem(storageName);
  } catch {
    // A browser that refuses its storage has kept nothing there.
  }
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
  const { chosen, noted, sessionId: leftId } = left;
  if (leftId !== sessionId) return null;
  left = {};
  return { chosen: choicesFrom(chosen), noted: choicesFrom(noted) };
}
