/**
 * What may be said about the choice of tokens, as the server describes it, and what of it is sent.
 *
 * No field is known here by its name but the one that the page itself has a default for, so that a
 * field of a later server works as soon as it is described.
 */

import { formatCount, formatDecimal, t } from "../i18n/catalogue";
import type { WireSamplingField, WireSamplingValue } from "../wire/protocol";

export type SamplingValues = Readonly<Record<string, WireSamplingValue>>;

/** A small model may never find an end by itself; more than this is rarely worth reading. */
const maxOutputTokens = 1_024;
export const ownDefaults: SamplingValues = { max_output_tokens: maxOutputTokens };

/** Return what holds where the reader changed nothing: the page's own default, or the server's. */
export function defaultOf(field: WireSamplingField): WireSamplingValue | null {
  return ownDefaults[field.name] ?? field.default;
}

/** Return the fields that have another value than by default; what a model does not take is none. */
export function changedFields(
  described: readonly WireSamplingField[],
  changed: SamplingValues,
): WireSamplingField[] {
  return described.filter((field) => changed[field.name] !== undefined);
}

/** Return the fields to send: what was changed and fits this model, and the page's own defaults. */
export function fieldsToSend(
  described: readonly WireSamplingField[],
  changed: SamplingValues,
): SamplingValues {
  const values = { ...ownDefaults, ...changed };
  const sent = described.flatMap((field) => {
    const value = values[field.name];
    return value === undefined || problemOf(field, value) !== null ? [] : [[field.name, value]];
  });
  return described.length === 0 ? ownDefaults : Object.fromEntries(sent);
}

/** Return what is wrong with a value of a field, in a sentence, or null. */
export function problemOf(field: WireSamplingField, value: WireSamplingValue): string | null {
  switch (field.type) {
    case "boolean":
      return typeof value === "boolean" ? null : t("choice.problem.type");
    case "number":
    case "integer":
      return typeof value === "number" ? problemOfNumber(field, value) : t("choice.problem.number");
    case "strings":
    case "integers":
      return Array.isArray(value) ? problemOfList(field, value) : t("choice.problem.type");
    default:
      return t("choice.problem.type");
  }
}

function problemOfNumber(field: WireSamplingField, value: number): string | null {
  const { minimum, maximum } = field;
  if (!Number.isFinite(value)) return t("choice.problem.number");
  const isWhole = field.type !== "number" && field.type !== "strings";
  if (isWhole && !Number.isInteger(value)) return t("choice.problem.integer");
  if (isWhole && !Number.isSafeInteger(value)) return t("choice.problem.large");
  if (minimum != null && (field.exclusive_minimum ? value <= minimum : value < minimum)) {
    const key = field.exclusive_minimum ? "choice.problem.above" : "choice.problem.minimum";
    return t(key, { limit: formatNumber(minimum) });
  }
  if (maximum != null && (field.exclusive_maximum ? value >= maximum : value > maximum)) {
    const key = field.exclusive_maximum ? "choice.problem.below" : "choice.problem.maximum";
    return t(key, { limit: formatNumber(maximum) });
  }
  return null;
}

function problemOfList(field: WireSamplingField, values: string[] | number[]): string | null {
  const { max_items: maxItems, max_item_chars: maxChars } = field;
  if (maxItems != null && values.length > maxItems) {
    return t("choice.problem.items", { limit: formatCount(maxItems) });
  }
  for (const value of values) {
    if (typeof value !== (field.type === "strings" ? "string" : "number")) {
      return t("choice.problem.type");
    }
    if (typeof value === "number") {
      const problem = problemOfNumber(field, value);
      if (problem !== null) return problem;
    } else if (maxChars != null && [...value].length > maxChars) {
      return t("choice.problem.chars", { limit: formatCount(maxChars) });
    }
  }
  return null;
}

export function formatNumber(value: number): string {
  return Number.isInteger(value) ? formatCount(value) : formatDecimal(value);
}
