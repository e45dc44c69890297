/**
 * The room under the last answer for all that its end may bring, so that the end moves nothing.
 *
 * As wide as words and figures get, and broken into lines as they would be. It holds no text: what
 * is drawn of it is nothing that could be read, found or copied.
 */

import { formatCount, formatDuration, formatRate, plural, t } from "../i18n/catalogue";

const manyTokens = 88_888;
const longMs = 88_800;

export function AnswerRoom({ hasVersions }: { hasVersions: boolean }) {
  const count = formatCount(manyTokens);
  const duration = formatDuration(longMs);
  const figures = [
    t("figures.cachedShare", { cached: count, total: count }),
    t("figures.queued", { duration }),
    t("figures.ttft", { duration }),
    formatRate(888),
  ];
  const actions = ["message.continue", "message.regenerate", "common.copy"] as const;
  return (
    <div class="room" aria-hidden="true">
      <p class="room-facts">
        {roomOf(plural("answer.cutAt", manyTokens))}
        <span class="room-figures">{figures.map(roomOf)}</span>
      </p>
      <p class={hasVersions ? "room-actions room-versions" : "room-actions"}>
        {actions.map((key) => t(key)).map(roomOf)}
      </p>
    </div>
  );
}

function roomOf(words: string) {
  return <span key={words} data-words={words} />;
}
