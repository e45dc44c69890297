/** How long ago something was, in the largest unit that says it. */

import { language } from "./catalogue";

const units = [
  { unit: "day", seconds: 86_400 },
  { unit: "hour", seconds: 3_600 },
  { unit: "minute", seconds: 60 },
] as const;

export function formatAge(seconds: number): string {
  const fitting = units.find((each) => seconds >= each.seconds);
  const { unit, seconds: length } = fitting ?? { unit: "second", seconds: 1 };
  return formatter(unit, seconds < 10 ? 1 : 0).format(Math.max(0, seconds) / length);
}

const formatters = new Map<string, Intl.NumberFormat>();

function formatter(unit: string, digits: number): Intl.NumberFormat {
  const name = `${language()} ${unit} ${digits}`;
  const known = formatters.get(name);
  if (known !== undefined) return known;
  const style = { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: digits } as const;
  const made = new Intl.NumberFormat(language(), style);
  formatters.set(name, made);
  return made;
}
