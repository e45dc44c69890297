/** Texts made to keep a parser busy, or to have it call itself without end. */

import { renderToString } from "preact-render-to-string";
import { describe, expect, test } from "vitest";

import { lex } from "../src/markdown/language";
import { Markdown } from "../src/markdown/markdown";

describe("a text nested without end", () => {
  test.each(["> ", "1. ", "- ", "> - "])("of %j is shown, to its last word", (mark) => {
    const text = `${mark.repeat(5_000)}word`;

    expect(renderToString(<Markdown text={text} isGrowing={false} />)).toContain("word");
  });

  test("keeps its raw text, whatever the depth", () => {
    const text = "> ".repeat(100);

    expect(lex(text).map(({ raw }) => raw).join("")).toBe(text);
  });
});

describe("a paragraph", () => {
  const render = (text: string) => renderToString(<Markdown text={text} isGrowing={false} />);

  test("of usual length has its emphasis", () => {
    expect(render(`${"word ".repeat(900)}**end**`)).toContain("<strong>end</strong>");
  });

  test("too long to look through stays plain, and the one after it does not", () => {
    const html = render(`${"**a* ".repeat(2_000)}\n\n**end**`);

    expect(html).toContain("**a* **a*");
    expect(html).toContain("<strong>end</strong>");
  });
});
