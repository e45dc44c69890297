/**
 * The line under an answer: how much of the prompt was cached, how soon and how fast it came.
 *
 * It appears with the first token. Until the answer ends, the size of the prompt and the rate are
 * not known, so the bar fades out without an end and the rate is left out; the end settles both.
 */

import { ttftMs, type Answer } from "../answer";
import { figuresInFull, formatCount, formatDuration, formatRate } from "../words";

export function Figures({ answer }: { answer: Answer }) {
  const { cachedTokens, usage, timings } = answer;
  const ttft = ttftMs(answer);
  const rate = timings?.tok_s ?? null;
  return (
    <div class="figures" role="group" aria-label="Figures" title={figuresInFull(answer)}>
      {cachedTokens !== null && (
        <span class="cache-share">
          <CacheBar cached={cachedTokens} total={usage?.input_tokens ?? null} />
          <span class="cached-tokens">{cacheWords(cachedTokens, usage?.input_tokens ?? null)}</span>
        </span>
      )}
      {ttft !== null && <span class="ttft">TTFT {formatDuration(ttft)}</span>}
      {rate !== null && <span class="rate">{formatRate(rate)}</span>}
    </div>
  );
}

function CacheBar({ cached, total }: { cached: number; total: number | null }) {
  const share = cached === 0 ? 0 : Math.min(1, cached / (total ?? cached));
  const state = total === null ? "cache-bar open" : "cache-bar";
  return (
    <svg class={state} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="computed" width="100" height="4" />
      <rect class="cached" width={100 * share} height="4" />
    </svg>
  );
}

function cacheWords(cached: number, total: number | null): string {
  if (total === null) return `${formatCount(cached)} prompt tokens cached`;
  return `${formatCount(cached)} of ${formatCount(total)} prompt tokens cached`;
}
