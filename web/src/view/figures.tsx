/**
 * The line under an answer: how much of the prompt was cached, how soon and how fast it came.
 *
 * It appears with the first token. The rate is not known until the answer ends, and left out.
 */

import { ttftMs, type Answer, type PromptTokens } from "../chat/answer";
import { figuresInFull } from "../chat/answer_words";
import { formatCount, formatDuration, formatRate, t } from "../i18n/catalogue";

export function Figures({ answer }: { answer: Answer }) {
  const { prompt, timings } = answer;
  const ttft = ttftMs(answer);
  const rate = timings?.tok_s ?? null;
  return (
    <div class="figures" role="group" aria-label={t("figures.label")} title={figuresInFull(answer)}>
      {prompt !== null && (
        <span class="cache-share">
          <CacheBar prompt={prompt} />
          <span class="cached-tokens">
            {t("figures.cachedShare", {
              cached: formatCount(prompt.cached),
              total: formatCount(prompt.total),
            })}
          </span>
        </span>
      )}
      {ttft !== null && <span class="ttft">{t("figures.ttft", { duration: formatDuration(ttft) })}</span>}
      {rate !== null && <span class="rate">{formatRate(rate)}</span>}
    </div>
  );
}

function CacheBar({ prompt }: { prompt: PromptTokens }) {
  return (
    <svg class="cache-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="computed" width="100" height="4" />
      <rect class="cached" width={(100 * prompt.cached) / prompt.total} height="4" />
    </svg>
  );
}
