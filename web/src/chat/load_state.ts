/** Whether a conversation can be shown, and what a request that failed means for that. */

import { ApiError } from "../wire/api";

export type LoadState =
  | { kind: "loading" }
  | { kind: "ready" }
  | { kind: "missing" }
  | { kind: "failed"; message: string };

/** Return whether a conversation is not there, or not the reader's; any other 404 is about less. */
export function isMissing(code: string | undefined): boolean {
  return code === "conversation_not_found";
}

/** Return whether what a request was about is not there any more. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

export function codeOf(error: unknown): string {
  return error instanceof ApiError ? error.code : "unknown";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
