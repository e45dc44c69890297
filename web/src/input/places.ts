/**
 * Where something that is not sent yet belongs: a conversation, a message in it, the way to the server.
 *
 * A conversation's id is the place of its composer, null that of the new chat; what belongs to it
 * otherwise has the id in front. Messages on their way belong to the tab that sends them.
 */

type SessionId = string | null;
export type Place = string | null;

/** What the new chat begins with, beside what is written in its composer. */
export const placeOfPrompt = "/prompt";
export const placeOfChoices = "/choices";
const outgoing = "/out/";

/** Return the place of a message that is being said otherwise. */
export function placeOfEdit(sessionId: SessionId, message: string): Place {
  return `${sessionId ?? ""}/edit/${message}`;
}

/** Return the place of what came back while the reader was writing something else. */
export function placeOfHeld(sessionId: SessionId): Place {
  return `${sessionId ?? ""}/held`;
}

export function placeOfOutgoing(sessionId: SessionId, name: string): Place {
  return `${outgoing}${sessionId ?? ""}/${name}`;
}

/** Return whose message is on its way in a place; undefined where none is. */
export function senderOf(place: Place): SessionId | undefined {
  if (place === null || !place.startsWith(outgoing)) return undefined;
  return place.slice(outgoing.length, place.lastIndexOf("/")) || null;
}

/** Return the conversation that a place is in, or null. */
export function sessionOf(place: Place): SessionId {
  return place?.split("/", 1)[0] || null;
}

export function isComposer(place: Place): boolean {
  return place === null || !place.includes("/");
}

/** Return whether a place is in a conversation; what is on its way is in none. */
export function isWithin(place: Place, sessionId: SessionId): boolean {
  if (place === sessionId) return true;
  return senderOf(place) === undefined && (place?.startsWith(`${sessionId ?? ""}/`) ?? false);
}

export function isEdit(place: Place, sessionId: SessionId): boolean {
  return place?.startsWith(`${sessionId ?? ""}/edit/`) ?? false;
}

/** Return where a place is once its conversation has another id. */
export function moved(place: Place, from: SessionId, to: SessionId): Place {
  if (place === from) return to;
  return `${to ?? ""}${place?.slice(from?.length ?? 0) ?? ""}`;
}
