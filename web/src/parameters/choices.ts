/**
 * What the reader chose for one conversation: model, persona, sampling fields; and how it is noted.
 *
 * The note is part of the conversation's metadata, so that another device sees it too. Metadata come
 * from other clients and from imported files as well: what reads them takes nothing for granted but
 * the shape that it has checked. Whether a value fits its field is checked where it is sent.
 */

import { isObject, isText, membersThatAre, parse } from "../shape";
import type { WireSamplingValue } from "../wire/protocol";
import type { SamplingValues } from "./sampling";

export interface PersonaChoice {
  readonly name: string;
  readonly variables: Readonly<Record<string, string>>;
}

export interface Choices {
  /** Null: whichever is served first. */
  readonly model: string | null;
  readonly persona: PersonaChoice | null;
  /** Those that are not left at their defaults. */
  readonly fields: SamplingValues;
}

export type Metadata = Readonly<Record<string, string>>;

export const noChoices: Choices = { model: null, persona: null, fields: {} };

const keyStem = "chatserve_page_";
const maxPairs = 16;
const maxValueChars = 512;

/** Return metadata with the choices noted in it, or null where there is no room for them. */
export function withChoices(metadata: Metadata, choices: Choices): Metadata | null {
  const others = Object.entries(metadata).filter(([key]) => !isOurs(key));
  const pieces = isSame(choices, noChoices) ? [] : cut(JSON.stringify(choices));
  if (others.length + pieces.length > maxPairs) return null;
  return Object.fromEntries([...others, ...pieces.map((piece, index) => [keyStem + index, piece])]);
}

/** Return the choices that metadata note. */
export function choicesIn(metadata: Metadata): Choices {
  const pieces: string[] = [];
  for (let index = 0; metadata[keyStem + index] !== undefined; index += 1) {
    pieces.push(metadata[keyStem + index]!);
  }
  return choicesFrom(parse(pieces.join("")));
}

/** Return choices of which nothing is certain; what makes no sense is left at its default. */
export function choicesFrom(value: unknown): Choices {
  const noted = isObject(value) ? value : {};
  return {
    model: typeof noted["model"] === "string" ? noted["model"] : null,
    persona: toPersona(noted["persona"]),
    fields: membersThatAre(noted["fields"], isSamplingValue),
  };
}

/** Return what was chosen here since `base`, upon what was chosen elsewhere. */
export function mergeChoices(base: Choices, mine: Choices, theirs: Choices): Choices {
  const choose = <T>(before: T, here: T, there: T) => (isSame(before, here) ? there : here);
  const names = new Set([...Object.keys(mine.fields), ...Object.keys(theirs.fields)]);
  const fields = [...names].flatMap((name) => {
    const value = choose(base.fields[name], mine.fields[name], theirs.fields[name]);
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    model: choose(base.model, mine.model, theirs.model),
    persona: choose(base.persona, mine.persona, theirs.persona),
    fields: Object.fromEntries(fields),
  };
}

/** Return whether two values say the same; the order of names says nothing. */
export function isSame(one: unknown, other: unknown): boolean {
  if (!isObject(one) || !isObject(other)) return one === other;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

function isOurs(key: string): boolean {
  return key.startsWith(keyStem);
}

/** Return a text in pieces of the length that one value may have, which counts characters. */
function cut(text: string): string[] {
  const characters = [...text];
  const pieces: string[] = [];
  for (let start = 0; start < characters.length; start += maxValueChars) {
    pieces.push(characters.slice(start, start + maxValueChars).join(""));
  }
  return pieces;
}

function toPersona(noted: unknown): PersonaChoice | null {
  if (!isObject(noted) || typeof noted["name"] !== "string") return null;
  return { name: noted["name"], variables: membersThatAre(noted["variables"], isText) };
}

function isSamplingValue(value: unknown): value is WireSamplingValue {
  if (!Array.isArray(value)) return typeof value === "number" || typeof value === "boolean";
  return value.every((each) => typeof each === "number") || value.every((each) => typeof each === "string");
}
