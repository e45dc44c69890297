/** How full limits are, and what they are called. */

import { t, tryText } from "../i18n/catalogue";

const nearlyFull = 0.8;

export type Fullness = "free" | "near" | "full";

/** Return how much of a limit is used, at most all; a limit of nothing is always used up. */
export function shareOf(used: number, limit: number): number {
  return limit === 0 ? 1 : Math.min(1, used / limit);
}

export function fullnessOf(share: number): Fullness {
  if (share >= 1) return "full";
  return share >= nearlyFull ? "near" : "free";
}

export function fullnessWords(share: number): string {
  return t(`operator.fullness.${fullnessOf(share)}`);
}

/** Return a quota's name in words; one that the page does not know keeps the server's. */
export function quotaName(name: string): string {
  return tryText(`operator.limit.${name}`) ?? name;
}
