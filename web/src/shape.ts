/**
 * Whether a value from outside is what it should be.
 *
 * What a browser keeps outlives the version of the page that wrote it, and anybody may write there:
 * it is read as `unknown`, and believed as far as these say so.
 */

export type Check<T> = (value: unknown) => value is T;

/** Return what a text says in JSON; nothing for one that is none. */
export function parse(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

export const isText: Check<string> = (value) => typeof value === "string";

export const isTextOrNull: Check<string | null> = (value): value is string | null =>
  value === null || isText(value);

export const isNumber: Check<number> = (value): value is number => Number.isFinite(value);

/** An array is one, too. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

export function isMaybe<T>(isOne: Check<T>): Check<T | null | undefined> {
  return (value): value is T | null | undefined => value == null || isOne(value);
}

export function isListOf<T>(isOne: Check<T>): Check<T[]> {
  return (value): value is T[] => Array.isArray(value) && value.every(isOne);
}

/** Members that are not named may be anything. */
export function isMadeOf<T>(members: { readonly [Name in keyof T]: Check<T[Name]> }): Check<T> {
  const checks = Object.entries<Check<unknown>>(members);
  return (value): value is T => isObject(value) && checks.every(([name, isOne]) => isOne(value[name]));
}

/** Return the members of a record that are of one kind. */
export function membersThatAre<T>(value: unknown, isOne: Check<T>): Record<string, T> {
  const members = Object.entries(isObject(value) ? value : {});
  return Object.fromEntries(members.filter((member): member is [string, T] => isOne(member[1])));
}
