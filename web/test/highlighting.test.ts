import { describe, expect, test } from "vitest";

import { isClosedFence } from "../src/markdown/fences";
import { grammarOf, highlight, loadGrammar } from "../src/markdown/highlighter";
import sheet from "../src/markdown/markdown.css?raw";
import pageSheet from "../src/view/base.css?raw";

async function piecesOf(code: string, language: string) {
  const grammar = grammarOf(language);
  if (grammar === null) return null;
  await loadGrammar(grammar);
  return highlight(code, grammar);
}

const samples: [language: string, code: string][] = [
  ["python", "def f(x: int) -> str:\n    return f'{x}' # why\n"],
  ["tsx", "const a = <b c={1}>text</b>; // é漢🎉"],
  ["html", "<p class='a'>&amp;</p><script>let x = 1</script><style>a{}</style>"],
  ["sh", "for i in $(ls); do echo \"$i\"; done\r\n"],
  ["toml", "[a]\nb = \"c\"\n"],
  ["diff", "-old\n+new\n"],
  ["sql", "SELECT 'a''b' FROM t -- end"],
  ["json", "{ \"broken\": [1, true"],
  ["c++", "template<class T> T f() { return T{}; }"],
];

describe("colours of code", () => {
  test.each(samples)("leave the text as it is: %s", async (language, code) => {
    const pieces = await piecesOf(code, language);

    expect(pieces?.map(({ text }) => text).join("")).toBe(code);
    expect(pieces?.some(({ kind }) => kind !== null)).toBe(true);
  });

  test.each(["", "text", "__proto__", "constructor", "toString", "nosuch"])(
    "are not guessed for the language %j",
    (language) => {
      expect(grammarOf(language)).toBeNull();
    },
  );

  test("name the kinds of things", async () => {
    expect(await piecesOf("return 1", "js")).toEqual([
      { kind: "keyword", text: "return" },
      { kind: null, text: " " },
      { kind: "number", text: "1" },
    ]);
  });
});

describe("a fence", () => {
  test.each([
    ["```js\na\n```", true],
    ["```js\na\n```\n", true],
    ["````\n```\n````", true],
    ["~~~\na\n~~~~  ", true],
    ["```js\na", false],
    ["```js\na\n``", false],
    ["````\n```", false],
    ["~~~\n```", false],
    ["    ```\n    a\n    ```", false],
  ])("%j is closed: %s", (raw, isClosed) => {
    expect(isClosedFence(raw)).toBe(isClosed);
  });
});

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const lights = [luminance(one), luminance(other)];
  return (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
}

const papers = /--paper: light-dark\((#\w+), (#\w+)\)/.exec(pageSheet)!;

const colours = [...sheet.matchAll(/--(code-\w+): light-dark\((#\w+), (#\w+)\)/g)];

test("there is a colour for each kind of code", () => {
  expect(colours).toHaveLength(10);
});

test.each(colours.map(([, ...found]) => found))(
  "the colour %s can be read on paper, light and dark",
  (_, light, dark) => {
    expect(contrast(light!, papers[1]!)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(dark!, papers[2]!)).toBeGreaterThanOrEqual(4.5);
  },
);
