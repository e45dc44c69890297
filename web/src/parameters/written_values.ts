/**
 * How the sampling fields read: their names, their values as a reader writes them, their sliders.
 *
 * Pure functions from a field's description to what a control needs. The words for a field are the
 * catalogue's; a field that it does not know has its own name.
 */

import { formatDecimal, t, tryText } from "../i18n/catalogue";
import type { WireSamplingField, WireSamplingValue } from "../wire/protocol";
import { defaultOf, formatNumber, ownDefaults, type SamplingValues } from "./sampling";

/** Fields of which the first must not exceed the second, which no description of one can tell. */
const orders = [["min_tokens", "max_output_tokens"]] as const;
/** Beyond this many steps a slider cannot be set to the one that is meant. */
const maxSliderSteps = 1_000;

/** Return the value that a reader has written; undefined for nothing, null for what is none. */
export function parseValue(
  { type }: WireSamplingField,
  text: string,
): WireSamplingValue | null | undefined {
  // A blank is a string like any other: an answer may well be told to stop at one.
  if ((type === "strings" ? text.replaceAll("\n", "") : text.trim()) === "") return undefined;
  switch (type) {
    case "number":
      return parseNumber(text);
    case "integer":
      return parseWhole(text);
    case "integers": {
      const numbers = text.split(/[\s,;]+/).filter((part) => part !== "").map(parseNumber);
      if (numbers.length === 0) return undefined;
      return numbers.every((number) => number !== null) ? numbers : null;
    }
    default:
      return text.split("\n").filter((line) => line !== "").map(unescapeLine);
  }
}

/** Return a value as a reader would write it. */
export function formatValue(value: WireSamplingValue | null): string {
  if (value === null) return "";
  if (typeof value === "number") return formatDecimal(value);
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

/** Return a value in words, in which the blanks at the ends of a string are seen. */
export function valueWords(value: WireSamplingValue): string {
  if (typeof value === "boolean") return t(value ? "parameter.on" : "parameter.off");
  return formatValue(value).replace(/^ +| +$/gm, (blanks) => "␣".repeat(blanks.length));
}

/** Return the default of a field in words. */
export function defaultWords(field: WireSamplingField): string {
  const value = defaultOf(field);
  if (typeof value === "number") return formatNumber(value);
  const text = value === null ? "" : valueWords(value);
  return text !== "" ? text : (tryText(`parameter.${field.name}.none`) ?? t("parameter.none"));
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
    return t("choice.problem.order", { lesser: labelOf(lesser), greater: labelOf(greater) });
  }
  return null;
}

/** Digits of any width and both marks of decimals are understood; thousands are not marked. */
function parseNumber(text: string): number | null {
  const written = plainDigits(text).replace(",", ".");
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(written)) return null;
  const number = Number(written);
  // One that has so many digits that it would be taken for a whole number is none.
  return Number.isInteger(number) && /\.\d*[1-9]/.test(written) ? null : number;
}

/** Thousands may be marked in a whole number, as every language does it. */
function parseWhole(text: string): number | null {
  const written = plainDigits(text);
  const isMarked = /^[+-]?\d{1,3}([.,'’ ])\d{3}(?:\1\d{3})*$/.test(written);
  return parseNumber(isMarked ? written.replace(/[^\d+-]/g, "") : written);
}

function plainDigits(text: string): string {
  return text.normalize("NFKC").replaceAll("−", "-").trim();
}

/** In a list of lines, a line break within one is written as \n. */
function escapeLine(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

function unescapeLine(line: string): string {
  const meant: Record<string, string> = { n: "\n", t: "\t", "\\": "\\" };
  return line.replace(/\\(.)/g, (whole, letter: string) => meant[letter] ?? whole);
}
