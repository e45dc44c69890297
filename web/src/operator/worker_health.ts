/** What a worker's last sign of life says of it. */

import type { WireWorkerOverview } from "../wire/overview";

/** Beats come about once a second. */
const silentAfterS = 5;

export type WorkerHealth = "live" | "draining" | "silent";

export function healthOf({ is_draining, beat_age_s }: WireWorkerOverview): WorkerHealth {
  if (beat_age_s >= silentAfterS) return "silent";
  return is_draining ? "draining" : "live";
}
