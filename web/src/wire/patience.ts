/** What the end of a connection means for the next try: whether there is one, when, and why. */

import type { ApiError } from "./api";
import { broken, type TransportEnd } from "./transport";

/** A key that was revoked, an origin that may not connect; a credential that is wrong. */
const refusals = new Set([1008, 4401]);
const tooManyConnections = 4429;
const tryAgainLater = 1013;

const firstRetryMs = 500;
const maxRetryMs = 8_000;
const busyRetryMs = 2_000;
const crowdedRetryMs = 30_000;

/** `lost`: nobody knows; `busy`: the server asked for it; `crowded`: too many connections are open. */
export type RetryReason = "lost" | "busy" | "crowded";

export function isRefusal({ code }: TransportEnd): boolean {
  return refusals.has(code);
}

export function retryReason({ code, retryAfterMs }: TransportEnd): RetryReason {
  if (code === tooManyConnections) return "crowded";
  return code === tryAgainLater || retryAfterMs !== null ? "busy" : "lost";
}

/** Return how long to wait before try number `attempt` (from 0); `random` is in [0, 1). */
export function retryDelayMs(attempt: number, random: number): number {
  const ceiling = Math.min(maxRetryMs, firstRetryMs * 2 ** attempt);
  return Math.round(ceiling * (0.5 + random / 2));
}

/** Return the least time until the next try that an end asks for. */
export function leastDelayMs(end: TransportEnd): number {
  const reason = retryReason(end);
  const own = reason === "crowded" ? crowdedRetryMs : reason === "busy" ? busyRetryMs : 0;
  return Math.max(own, end.retryAfterMs ?? 0);
}

/** Return what ends with a refused request, in a code that says the same; null: only the request. */
export function endOf({ status, code, message: reason, retryAfterMs }: ApiError): TransportEnd | null {
  if (status === 0 || code === `http_${status}`) return { ...broken, retryAfterMs };
  if (status === 401) return { code: 4401, reason, retryAfterMs };
  if (status === 403) return { code: 1008, reason, retryAfterMs };
  if (status === 429) return { code: 4429, reason, retryAfterMs };
  return status >= 500 ? { code: 1013, reason, retryAfterMs } : null;
}
