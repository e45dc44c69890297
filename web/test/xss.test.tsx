import { renderToString } from "preact-render-to-string";
import { beforeAll, describe, expect, test, vi } from "vitest";

import { typesetter } from "../src/markdown/math";
import { renderWhole } from "./whole";
import { Markdown } from "../src/markdown/markdown";
import corpus from "./xss_corpus.json";

/** All that the text of an answer may become: each element with the attributes it may have. */
const allowed: Record<string, string> = {
  div: "class dir tabindex role aria-label",
  p: "dir",
  h3: "dir",
  h4: "dir",
  h5: "dir",
  h6: "dir",
  hr: "",
  br: "",
  blockquote: "dir",
  ul: "dir",
  ol: "start dir",
  li: "class dir",
  input: "type checked disabled",
  strong: "",
  em: "",
  del: "",
  code: "",
  a: "href target rel",
  table: "dir",
  thead: "",
  tbody: "",
  tr: "",
  th: "class dir",
  td: "class dir",
  figure: "class",
  figcaption: "",
  pre: "tabindex dir",
  button: "type class aria-label",
  span: "class aria-hidden",
  svg: "class viewBox aria-hidden focusable",
  rect: "x y width height rx",
  path: "d",
};

const mathElements =
  "math mrow mi mn mo mtext mspace mstyle mfrac msqrt mroot msub msup msubsup munder mover " +
  "munderover mmultiscripts mprescripts none mpadded mphantom mtable mtr mtd menclose";
const mathAttributes =
  "class style display displaystyle scriptlevel mathvariant width height depth voffset lspace " +
  "rspace form fence separator stretchy symmetric largeop movablelimits minsize maxsize " +
  "linethickness accent columnalign rowspacing notation";
for (const name of mathElements.split(" ")) allowed[name] = mathAttributes;

function render(text: string): string {
  return renderToString(<Markdown text={text} isGrowing={false} />);
}

/** Return each element with its attributes; the renderer escapes `<` in texts, `"` in values. */
function elementsOf(html: string): { name: string; attributes: string[] }[] {
  const tags = html.matchAll(/<([^\s/>]+)((?:\s+[^\s=>]+(?:="[^"]*")?)*)\s*\/?>/g);
  return [...tags].map(([, name, written]) => {
    const attributes = written!.matchAll(/\s+([^\s=>]+)(?:="[^"]*")?/g);
    return { name: name!, attributes: [...attributes].map((match) => match[1]!) };
  });
}

function isAllowed({ name, attributes }: { name: string; attributes: string[] }): boolean {
  if (!Object.hasOwn(allowed, name)) return false;
  const names = new Set(allowed[name]!.split(" "));
  return attributes.every((attribute) => names.has(attribute));
}

beforeAll(async () => {
  // Formulas take turns; here nobody waits for another one's.
  vi.stubGlobal("requestIdleCallback", (run: () => void) => run());
  await typesetter.request();
});

describe("an attack", () => {
  test.each(corpus)("becomes nothing that is not allowed: %j", (attack) => {
    const places = [attack, `text ${attack} text`, `- ${attack}`, `> ${attack}`, `**${attack}**`];
    for (const text of [...places, `| a |\n| - |\n| ${attack} |`]) {
      const html = render(text);

      expect(elementsOf(html).filter((element) => !isAllowed(element))).toEqual([]);
      expect(html).not.toMatch(/href="(?!https?:\/\/|mailto:)/i);
      expect(html).not.toMatch(/style="[^"]*(?:url|expression|position)/i);
    }
  });

  test("is not missed by this test", () => {
    expect(elementsOf('<img src="x" onerror="y"><p onclick="z">').map(isAllowed)).toEqual([
      false,
      false,
    ]);
  });
});

describe("mathematics", () => {
  test("is typeset, in its line and on lines of its own", () => {
    expect(render("so \\(x^2\\) is")).toContain("<msup>");
    expect(render("$$\n\\frac{1}{2}\n$$")).toContain(
      '<span class="math display"><math display="block"',
    );
  });

  test.each(["\\href{javascript:x}{y}", "\\frac{1", "\\nosuch"])(
    "is shown as its source where it is wrong or not trusted: %s",
    (source) => {
      expect(render(`\\(${source}\\)`)).toContain(`<code>\\(${source}\\)</code>`);
    },
  );

  test("is shown as its source where it is too long", () => {
    const source = "x".repeat(10_001);

    expect(renderWhole(`$$\n${source}\n$$`)).toContain(`<code>$$\n${source}\n$$</code>`);
  });

  test.each(["$5 and $6", "from $$ to $$$", "$$", "open $$ x", "a \\(b", "$$ $$"])(
    "is not found in %j",
    (text) => {
      expect(render(text)).not.toContain("<math");
    },
  );

  test("may stand within emphasis and hold its marks", () => {
    expect(render("*so \\(a*b\\) is*")).toMatch(/<em>so <span class="math"><math.*<\/span> is<\/em>/);
  });
});
