/** What is asked for over HTTP where an answer comes as a stream of events of its own. */

import { call, request, toApiError, type RequestParts } from "./api";
import type { CreateMessage } from "./protocol";

/** Asks for the events without a number as well, which a socket has anyway. */
const updatesToo = { "x-chatserve-updates": "1" };

/** Ask for an answer as a stream of its events; asking again with the same message is no second answer. */
export function streamNewAnswer(message: CreateMessage, signal: AbortSignal): Promise<Response> {
  const { type: _type, stream_id: _lane, event_id: key, ...body } = message;
  const headers = { ...updatesToo, "Idempotency-Key": key };
  return stream("POST", "v1/responses", { body: { ...body, stream: true }, headers, signal });
}

/** Ask for the events of an answer after the one with this number, or for all. */
export function streamAnswer(
  responseId: string,
  startingAfter: number | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const query = new URLSearchParams({ stream: "true" });
  if (startingAfter !== undefined) query.set("starting_after", String(startingAfter));
  const path = `v1/responses/${encodeURIComponent(responseId)}?${query}`;
  return stream("GET", path, { headers: updatesToo, signal });
}

export async function cancelAnswer(responseId: string): Promise<void> {
  await call("POST", `v1/responses/${encodeURIComponent(responseId)}/cancel`, {});
}

/** Return a reply whose body is still to come. */
async function stream(method: string, path: string, parts: RequestParts): Promise<Response> {
  const response = await request(method, path, parts);
  if (!response.ok) throw toApiError(response, await response.json().catch(() => null));
  return response;
}
