/**
 * Which workers have given no new snapshot for a while.
 *
 * Pure. Compares what a worker says of its own clock with itself only: clocks of workers and
 * browsers differ.
 */

import type { WireCacheWorker } from "../wire/cache_snapshot";

const bearableMs = 4_000;

export interface Takings {
  /** When the gateway was last heard, by the browser's clock. */
  atMs: number;
  /** Of each worker its newest snapshot, and when that came first. */
  byWorker: ReadonlyMap<string, { takenAt: number; sinceMs: number }>;
}

export function followTakings(
  previous: Takings,
  workers: readonly WireCacheWorker[],
  nowMs: number,
): Takings {
  const taken = workers.map(({ id, taken_at }) => {
    const known = previous.byWorker.get(id);
    const isNews = known?.takenAt !== taken_at;
    return [id, isNews ? { takenAt: taken_at, sinceMs: nowMs } : known] as const;
  });
  return { atMs: nowMs, byWorker: new Map(taken) };
}

/** Return for how many seconds a worker has been silent, or null if that is nothing to speak of. */
export function silenceS({ atMs, byWorker }: Takings, workerId: string): number | null {
  const taking = byWorker.get(workerId);
  if (taking === undefined) return null;
  const silentMs = atMs - taking.sinceMs;
  return silentMs < bearableMs ? null : silentMs / 1_000;
}
