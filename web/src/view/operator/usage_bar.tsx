/** How much of something is used: in numbers, and as a bar where it is known. */

import { formatCount, t } from "../../i18n/catalogue";
import { fullnessOf, fullnessWords, shareOf } from "../../operator/limits";

interface UsageBarProps {
  name: string;
  /** Null: not known. */
  used: number | null;
  limit: number;
}

export function UsageBar({ name, used, limit }: UsageBarProps) {
  if (used === null) {
    return (
      <div class="usage">
        <span>{name}</span>
        <span class="of-limit">{t("operator.upTo", { limit: formatCount(limit) })}</span>
      </div>
    );
  }
  const share = shareOf(used, limit);
  return (
    <div class="usage" data-fullness={fullnessOf(share)}>
      <span>{name}</span>
      <span class="of-limit">
        {t("operator.ofLimit", { used: formatCount(used), limit: formatCount(limit) })}
        <span class="visually-hidden">, {fullnessWords(share)}</span>
      </span>
      <svg class="usage-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect class="all" width="100" height="4" />
        <rect class="used" width={100 * share} height="4" />
      </svg>
    </div>
  );
}
