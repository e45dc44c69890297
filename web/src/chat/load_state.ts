/** Whether a conversation can be shown, and what a request that failed means for that. */

import { ApiError } from "../wire/api";

export type LoadState =
  | { kind: "loading" }
  | { kind: "ready" }
  | { kind: "missing" }
  | { kind: "failed"; message: string };

export function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

export function toLoadState(error: unknown): LoadState {
  if (isGone(error)) return { kind: "missing" };
  return { kind: "failed", message: messageOf(error) };
}

export function codeOf(error: unknown): string {
  return error instanceof ApiError ? error.code : "unknown";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
