/** How much of a persona the workers have ready. */

import type { WirePrompt, WirePromptWorker } from "../wire/protocol";

/** What a model's workers have ready of a persona, the best of them. */
export interface Readiness {
  state: WirePromptWorker["state"];
  numTokens: number;
}

const bestFirst: WirePromptWorker["state"][] = ["pinned", "cached", "warming", "refused", null];

/** Return what the workers of a model have ready, or null where none serves it. */
export function readinessOf({ workers }: WirePrompt, model: string): Readiness | null {
  const ours = workers.filter((worker) => worker.model === model);
  const best = bestFirst.flatMap((state) => ours.filter((worker) => worker.state === state))[0];
  return best === undefined ? null : { state: best.state, numTokens: best.num_tokens };
}
