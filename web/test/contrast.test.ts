import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

const css = readFileSync(new URL("../src/view/base.css", import.meta.url), "utf8");
const colours = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(
    ([, name = "", light = "", dark = ""]) => [name, { light, dark }],
  ),
);

const papers = ["paper", "rail", "raised", "hover", "chosen"];
/** Text, and what it stands on; at AA small text needs 4.5. */
const texts: [string, string[]][] = [
  ["text", [...papers, "danger-paper"]],
  ["muted", ["paper", "rail", "raised"]],
  ["accent", ["paper", "rail", "hover"]],
  ["on-accent", ["accent"]],
  ["paper", ["text"]],
  ["warning", ["paper", "rail"]],
  ["danger", ["paper", "hover", "danger-paper"]],
];
/** Graphics without which something is not understood need 3. */
const graphics: [string, string[]][] = [
  ["cached", ["paper", "computed"]],
  ["accent", papers],
];

const pairs = (of: typeof texts) =>
  of.flatMap(([front, backs]) => backs.map((back) => [front, back] as const));

describe.each(["light", "dark"] as const)("in the %s theme", (theme) => {
  test.each(pairs(texts))("%s on %s can be read", (front, back) => {
    expect(contrast(colour(front, theme), colour(back, theme))).toBeGreaterThanOrEqual(4.5);
  });

  test.each(pairs(graphics))("%s on %s can be seen", (front, back) => {
    expect(contrast(colour(front, theme), colour(back, theme))).toBeGreaterThanOrEqual(3);
  });
});

function colour(name: string, theme: "light" | "dark"): string {
  const found = colours.get(name);
  if (found === undefined) throw new Error(`base.css has no colour --${name}`);
  return found[theme];
}

/** The ratio of WCAG 2: the lighter luminance over the darker one, each with a little haze. */
function contrast(one: string, other: string): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const share = Number.parseInt(hex.slice(start, start + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
