/**
 * What may be said about the choice of tokens, as the server describes it.
 *
 * Pure functions from a field's description to what a control needs: how it is written, read and
 * checked. No field is known here by its name but those of which the page itself has something to
 * say, so that a field of a later server works as soon as it is described.
 */

import { formatCount, t, tryText } from "../i18n/catalogue";
import type { WireSamplingField, WireSamplingValue } from "../wire/protocol";

export type SamplingValues = Readonly<Record<string, WireSamplingValue>>;

/** A small model may never find an end by itself; more than this is rarely worth reading. */
const maxOutputTokens = 1_024;
const ownDefaults: SamplingValues = { max_output_tokens: maxOutputTokens };
/** Fields of which the first must not exceed the second, which no description of one can tell. */
const orders = [["min_tokens", "max_output_tokens"]] as const;
/** Beyond this many steps a slider cannot be set to the one that is meant. */
const maxSliderSteps = 1_000;

/** Return what holds where the reader changed nothing: the page's own default, or the server's. */
export function defaultOf(field: WireSamplingField): WireSamplingValue | null {
  return ownDefaults[field.name] ?? field.default;
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
      return typeof value === "boolean" ? null : t("parameter.problem.type");
    case "number":
    case "integer":
      return typeof value === "number" ? problemOfNumber(field, value) : t("parameter.problem.number");
    case "strings":
    case "integers":
      return Array.isArray(value) ? problemOfList(field, value) : t("parameter.problem.type");
    default:
      return t("parameter.problem.type");
  }
}

/** Return what is wrong with a value next to the other values, or null. */
export function conflictOf(
  name: string,
  value: WireSamplingValue,
  others: SamplingValues,
): string | null {
  const values: SamplingValues = { ...ownDefaults, ...others, [name]: value };
  for (const [lesser, greater] of orders) {
    const low = values[lesser];
    const high = values[greater];
    if (name !== lesser && name !== greater) continue;
    if (typeof low !== "number" || typeof high !== "number" || low <= high) continue;
    return t("parameter.problem.order", { lesser: labelOf(lesser), greater: labelOf(greater) });
  }
  return null;
}

/** Return the value that a reader has written; undefined for nothing, null for what is none. */
export function parseValue(
  { type }: WireSamplingField,
  text: string,
): WireSamplingValue | null | undefined {
  if (text.trim() === "") return undefined;
  switch (type) {
    case "number":
    case "integer":
      return parseNumber(text);
    case "integers": {
      const numbers = text.split(/[\s,;]+/).filter((part) => part !== "").map(parseNumber);
      return numbers.every((number) => number !== null) ? numbers : null;
    }
    default:
      return text.split("\n").filter((line) => line !== "").map(unescapeLine);
  }
}

/** Return a value as a reader would write it. */
export function formatValue(value: WireSamplingValue | null): string {
  if (value === null) return "";
  if (!Array.isArray(value)) return String(value);
  return value.map((each) => (typeof each === "string" ? escapeLine(each) : each)).join(
    typeof value[0] === "string" ? "\n" : ", ",
  );
}

/** Return the ends and the step of a slider, or null where a slider is of no use. */
export function sliderOf(field: WireSamplingField): { min: number; max: number; step: number } | null {
  const { minimum, maximum } = field;
  if (minimum == null || maximum == null || minimum >= maximum) return null;
  const step = field.type === "integer" ? 1 : 10 ** Math.floor(Math.log10((maximum - minimum) / 50));
  if ((field.type !== "number" && field.type !== "integer") || (maximum - minimum) / step > maxSliderSteps) {
    return null;
  }
  const min = field.exclusive_minimum ? minimum + step : minimum;
  return { min, max: field.exclusive_maximum ? maximum - step : maximum, step };
}

export function labelOf(name: string): string {
  return tryText(`parameter.${name}.label`) ?? name;
}

/** Return what a field does, in a sentence, or null for one that the page does not know. */
export function meaningOf(name: string): string | null {
  return tryText(`parameter.${name}.means`);
}

/** Return the default of a field in words. */
export function defaultWords(field: WireSamplingField): string {
  const value = defaultOf(field);
  if (typeof value === "boolean") return t(value ? "parameter.on" : "parameter.off");
  if (typeof value === "number") return formatNumber(value);
  const text = formatValue(value);
  return text !== "" ? text : (tryText(`parameter.${field.name}.none`) ?? t("parameter.none"));
}

function problemOfNumber(field: WireSamplingField, value: number): string | null {
  const { minimum, maximum } = field;
  if (!Number.isFinite(value)) return t("parameter.problem.number");
  const isWhole = field.type !== "number" && field.type !== "strings";
  if (isWhole && !Number.isInteger(value)) return t("parameter.problem.integer");
  if (isWhole && !Number.isSafeInteger(value)) return t("parameter.problem.large");
  if (minimum != null && (field.exclusive_minimum ? value <= minimum : value < minimum)) {
    const key = field.exclusive_minimum ? "parameter.problem.above" : "parameter.problem.atLeast";
    return t(key, { limit: formatNumber(minimum) });
  }
  if (maximum != null && (field.exclusive_maximum ? value >= maximum : value > maximum)) {
    const key = field.exclusive_maximum ? "parameter.problem.below" : "parameter.problem.atMost";
    return t(key, { limit: formatNumber(maximum) });
  }
  return null;
}

function problemOfList(field: WireSamplingField, values: string[] | number[]): string | null {
  const { max_items: maxItems, max_item_chars: maxChars } = field;
  if (maxItems != null && values.length > maxItems) {
    return t("parameter.problem.items", { limit: formatCount(maxItems) });
  }
  for (const value of values) {
    if (typeof value !== (field.type === "strings" ? "string" : "number")) {
      return t("parameter.problem.type");
    }
    if (typeof value === "number") {
      const problem = problemOfNumber(field, value);
      if (problem !== null) return problem;
    } else if (maxChars != null && [...value].length > maxChars) {
      return t("parameter.problem.chars", { limit: formatCount(maxChars) });
    }
  }
  return null;
}

/** Both marks of decimals are understood; thousands are not marked. */
function parseNumber(text: string): number | null {
  const number = Number(text.trim().replace(",", "."));
  return text.trim() === "" || !Number.isFinite(number) ? null : number;
}

function formatNumber(value: number): string {
  return Number.isInteger(value) ? formatCount(value) : String(value);
}

/** In a list of lines, a line break within one is written as \n. */
function escapeLine(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

function unescapeLine(line: string): string {
  const meant: Record<string, string> = { n: "\n", t: "\t", "\\": "\\" };
  return line.replace(/\\(.)/g, (whole, letter: string) => meant[letter] ?? whole);
}
