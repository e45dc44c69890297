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
  const maximumFractionDigits = seconds < 10 ? 1 : 0;
  const style = { style: "unit", unit, unitDisplay: "short", maximumFractionDigits } as const;
  return new Intl.NumberFormat(language(), style).format(Math.max(0, seconds) / length);
}
