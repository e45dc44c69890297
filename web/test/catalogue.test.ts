import { afterEach, describe, expect, test } from "vitest";

import { formatCount, language, languages, ordinal, plural, preferred, speak, t } from "../src/i18n/catalogue";
import german from "../src/i18n/de.json";
import first from "../src/i18n/en.json";
import later from "../src/i18n/en.later.json";
import japanese from "../src/i18n/ja.json";
import chinese from "../src/i18n/zh.json";

const english = { ...first, ...later };

const translations: [string, Record<string, string>][] = [
  ["de", german],
  ["ja", japanese],
  ["zh", chinese],
];

afterEach(() => speak("en"));

describe.each(translations)("the catalogue %s", (_name, catalogue) => {
  test("has the keys of the English one, in its order", () => {
    expect(Object.keys(catalogue)).toEqual(Object.keys(english).toSorted());
  });

  test.each(Object.entries(english))("fills the same places in %s", (key, text) => {
    expect(placesIn(catalogue[key]!)).toEqual(placesIn(text));
  });
});

test.each([[first], [later]])("the keys stand in alphabetical order", (catalogue) => {
  expect(Object.keys(catalogue)).toEqual(Object.keys(catalogue).toSorted());
});

test("what is loaded at first asks for no word that comes later", () => {
  const early = Object.entries(firstSources());
  // In English the server's own sentences stand for these; other languages come whole.
  const keys = Object.keys(later).filter((key) => !key.startsWith("error.reason."));
  const asking = keys.flatMap((key) => {
    return early.filter(([, text]) => asksFor(text, key)).map(([path]) => `${path} asks for ${key}`);
  });

  expect(early.length).toBeGreaterThan(50);
  expect(asking).toEqual([]);
});

/** Return the page's own modules that are there before anything is loaded later, by their paths. */
function firstSources(): Record<string, string> {
  const sources = import.meta.glob("../src/**/*.{ts,tsx}", {
    query: "?raw",
    import: "default",
    eager: true,
  });
  const found = new Set(["../src/main.tsx"]);
  for (const path of found) {
    const imports = sources[path]!.matchAll(/^(?:import|export)(?! type)[^;]*?"(\.[^"]+)";$/gm);
    for (const [, name] of imports) {
      const { pathname } = new URL(name!, new URL(path, "file:///web/test/"));
      const module = pathname.replace("/web/", "../");
      found.add([`${module}.ts`, `${module}.tsx`].find((file) => file in sources) ?? path);
    }
  }
  return Object.fromEntries([...found].map((path) => [path, sources[path]!]));
}

/** Return whether a module names a key, or the beginning of one that it puts together. */
function asksFor(source: string, key: string): boolean {
  const stem = key.replace(/\.(?:one|other)$/, "");
  if (["\"", "`"].some((mark) => source.includes(`${mark}${stem}${mark}`))) return true;
  return [...source.matchAll(/`([\w.]+\.)\$\{/g)].some(([, prefix]) => key.startsWith(prefix!));
}

test("every plural of the English catalogue has the forms that English needs", () => {
  const stems = Object.keys(english).filter((key) => key.endsWith(".other"));
  for (const stem of stems) expect(english).toHaveProperty([stem.replace(/other$/, "one")]);
});

test("another language takes effect in words, plurals, ordinals and numbers", async () => {
  expect(t("common.delete")).toBe("Delete");
  expect(plural("progress.prefillingTokens", 1)).toBe("reading 1 token");
  expect(plural("progress.prefillingTokens", 2300)).toBe("reading 2,300 tokens");
  expect([1, 2, 3, 4, 11, 22].map(ordinal)).toEqual(["1st", "2nd", "3rd", "4th", "11th", "22nd"]);

  expect(await speak("de")).toBe(true);

  expect(language()).toBe("de");
  expect(t("common.delete")).toBe("Löschen");
  expect(plural("progress.prefillingTokens", 2300)).toBe("liest 2.300 Token");
  expect(ordinal(3)).toBe("3.");
  expect(formatCount(1234567)).toBe("1.234.567");
});

test.each([
  [["de-AT", "en"], "de"],
  [["fr", "zh-Hant-TW", "en"], "zh"],
  [["fr"], "en"],
  [[], "en"],
])("of %j the page speaks %s", (wanted, spoken) => {
  expect(preferred(wanted)).toBe(spoken);
  expect(languages).toHaveProperty(spoken);
});

function placesIn(text: string): string[] {
  return (text.match(/\{\w+\}/g) ?? []).toSorted();
}
