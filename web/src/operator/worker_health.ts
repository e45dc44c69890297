/** What a worker's last sign of life says of it, and how much of its prompts it found. */

import type { WireWorkerOverview } from "../wire/overview";

/** Beats come about once a second. */
const silentAfterMs = 5_000;

export type WorkerHealth = "live" | "draining" | "silent";

export function healthOf({ is_draining, beat_age_ms }: WireWorkerOverview): WorkerHealth {
  if (beat_age_ms === null || beat_age_ms >= silentAfterMs) return "silent";
  return is_draining ? "draining" : "live";
}

/** Return the share of prompt tokens that were cached, or null before the first prompt. */
export function hitRate({ query_tokens, hit_tokens }: WireWorkerOverview): number | null {
  return query_tokens === 0 ? null : hit_tokens / query_tokens;
}
