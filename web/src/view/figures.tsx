/**
 * The line under an answer: how much of the prompt was cached, how soon and how fast it came.
 *
 * It appears with the first token. Every figure is the server's, taken once, so that none of them
 * changes at the end or after a reload. The rate is not known until the answer ends, and left out
 * until then: pieces of text are not tokens, so what the page could count would be another figure.
 */

import type { Answer, PromptTokens } from "../chat/answer";
import { figuresInFull } from "../chat/answer_words";
import { formatCount, formatDuration, formatRate, t } from "../i18n/catalogue";

export function Figures({ answer, onInspect }: { answer: Answer; onInspect: () => void }) {
  const { prompt, timings } = answer;
  const ttft = timings?.ttft_ms ?? null;
  const rate = timings?.tok_s ?? null;
  const queueMs = Math.round(timings?.queue_ms ?? 0);
  return (
    <div class="figures" role="group" aria-label={t("figures.label")} title={figuresInFull(answer)}>
      <button type="button" class="quiet" onClick={onInspect}>
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
        {queueMs > 0 && <span>{t("figures.queued", { duration: formatDuration(queueMs) })}</span>}
        {ttft !== null && <span class="ttft">{t("figures.ttft", { duration: formatDuration(ttft) })}</span>}
        {rate !== null && <span class="rate">{formatRate(rate)}</span>}
        <span class="visually-hidden">{t("figures.show")}</span>
      </button>
    </div>
  );
}

export function CacheBar({ prompt }: { prompt: PromptTokens }) {
  return (
    <svg class="cache-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="computed" width="100" height="4" />
      <rect class="cached" width={(100 * prompt.cached) / prompt.total} height="4" />
    </svg>
  );
}
