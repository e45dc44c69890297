/**
 * How long the reader has waited for the first token, by their own clock.
 *
 * Hidden from assistive technology, which would read it out at every step.
 */

import { formatDuration, t } from "../i18n/catalogue";
import { useNow } from "./now";

/** An answer that begins sooner is not waited for. */
const firstShownS = 2;

export function WaitingClock({ sinceMs }: { sinceMs: number }) {
  const waitedS = Math.floor((useNow(true) - sinceMs) / 1_000);
  if (waitedS < firstShownS) return null;
  return <span aria-hidden="true">{t("progress.waited", { duration: formatDuration(1_000 * waitedS) })}</span>;
}
