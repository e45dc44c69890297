/**
 * Which language the page speaks, and the words of it.
 *
 * Owns the catalogue in use. English is part of the page, but for the words of views that are loaded
 * later, which come with them; another language is loaded whole when it is asked for, and until
 * then, or if that fails, English stands. What reads a word in a view is rendered again when the
 * language changes.
 */

import { signal } from "@preact/signals";

import english from "./en.json";
import type englishOfLaterViews from "./en.later.json";

export type Key = keyof typeof english | keyof typeof englishOfLaterViews;
/** A key that stands for one text for each plural form, as `Intl.PluralRules` names them. */
export type PluralKey = Key extends infer K ? (K extends `${infer Stem}.other` ? Stem : never) : never;
type Catalogue = Record<Key, string>;
type Values = Record<string, string | number>;

export const languages = { en: "English", de: "Deutsch", ja: "日本語", zh: "中文" } as const;
export type Language = keyof typeof languages;

const loaders: Record<Exclude<Language, "en">, () => Promise<{ default: Catalogue }>> = {
  de: () => import("./de.json"),
  ja: () => import("./ja.json"),
  zh: () => import("./zh.json"),
};

// A key that is not there yet belongs to a view that is not there yet.
let englishWords = english as Catalogue;

const current = signal<{ language: Language; words: Catalogue }>({
  language: "en",
  words: englishWords,
});

/** Return the language in use. */
export function language(): Language {
  return current.value.language;
}

/** Speak a language from now on; return whether its words could be had. */
export async function speak(wanted: Language): Promise<boolean> {
  try {
    const words = wanted === "en" ? englishWords : (await loaders[wanted]()).default;
    current.value = { language: wanted, words };
    return true;
  } catch {
    return false;
  }
}

/** Load the words of the views that are loaded later. */
export async function loadLaterWords(): Promise<void> {
  const later = (await import("./en.later.json")).default;
  englishWords = { ...english, ...later };
  if (current.value.language === "en") current.value = { language: "en", words: englishWords };
}

/** Return the first language of a reader's list that the page speaks, else English. */
export function preferred(wanted: readonly string[]): Language {
  const spoken = Object.keys(languages) as Language[];
  const primary = wanted.map((tag) => tag.toLowerCase().split("-", 1)[0]);
  return primary.flatMap((tag) => spoken.filter((name) => name === tag))[0] ?? "en";
}

/** Return a text with its `{names}` replaced by values. */
export function t(key: Key, values: Values = {}): string {
  return fill(current.value.words[key], values);
}

/** Return the text for a number of things; `{count}` in it is that number, formatted. */
export function plural(key: PluralKey, count: number, values: Values = {}): string {
  return numbered(key, count, "cardinal", values);
}

/** Return a number as a place in a row: 3rd. */
export function ordinal(count: number): string {
  return numbered("ordinal", count, "ordinal", {});
}

/** Return the text under a key that is put together, or null if there is none. */
export function tryText(key: string): string | null {
  return (current.value.words as Record<string, string>)[key] ?? null;
}

export function formatCount(count: number): string {
  return formatter(0).format(count);
}

/** Return a number with all its digits, as a reader writes it: thousands are not marked. */
export function formatDecimal(value: number): string {
  return String(value).replace(".", formatter(1).format(0.5).charAt(1));
}

export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${formatter(0).format(ms)} ms`;
  return `${formatter(1).format(ms / 1_000)} s`;
}

/** Return a day and a time of it. */
export function formatMoment(atMs: number): string {
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" }).format(atMs);
}

/** Return a size in the unit in which it has one to three digits before the point. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${formatter(0).format(bytes)} B`;
  if (bytes < 1_000_000) return `${formatter(bytes < 10_000 ? 1 : 0).format(bytes / 1_000)} kB`;
  return `${formatter(1).format(bytes / 1_000_000)} MB`;
}

export function formatRate(tokensPerSecond: number): string {
  return t("figures.rate", { rate: formatter(tokensPerSecond < 10 ? 1 : 0).format(tokensPerSecond) });
}

/** Return a share of one in percent. */
export function formatShare(share: number): string {
  return new Intl.NumberFormat(language(), { style: "percent" }).format(share);
}

function numbered(
  key: PluralKey,
  count: number,
  type: Intl.PluralRulesOptions["type"] & string,
  values: Values,
): string {
  const form = pluralRules(type).select(count);
  const text = tryText(`${key}.${form}`) ?? t(`${key}.other` as Key);
  return fill(text, { count: formatCount(count), ...values });
}

const knownRules = new Map<string, Intl.PluralRules>();

/** Making rules takes longer than a view of many numbers may take to be drawn. */
function pluralRules(type: Intl.PluralRulesOptions["type"] & string): Intl.PluralRules {
  const name = `${language()} ${type}`;
  const rules = knownRules.get(name) ?? new Intl.PluralRules(language(), { type });
  knownRules.set(name, rules);
  return rules;
}

const formatters = new Map<string, Intl.NumberFormat>();

function formatter(digits: number): Intl.NumberFormat {
  const name = `${language()} ${digits}`;
  const known = formatters.get(name);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat(language(), { maximumFractionDigits: digits });
  formatters.set(name, made);
  return made;
}

function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
