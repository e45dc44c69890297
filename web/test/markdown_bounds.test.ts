/** Texts made to keep a parser busy, or to have it call itself without end. */

import { describe, expect, test } from "vitest";

import { lex } from "../src/markdown/language";
import { renderWhole } from "./whole";

describe("a text nested without end", () => {
  test.each(["> ", "1. ", "- ", "> - "])("of %j is shown, to its last word", (mark) => {
    const text = `${mark.repeat(5_000)}word`;

    expect(renderWhole(text)).toContain("word");
  });

  test("keeps its raw text, whatever the depth", () => {
    const text = "> ".repeat(100);

    expect(lex(text).map(({ raw }) => raw).join("")).toBe(text);
  });
});

describe("a paragraph", () => {
  test("of usual length has its emphasis", () => {
    expect(renderWhole(`${"word ".repeat(900)}**end**`)).toContain("<strong>end</strong>");
  });

  test("too long to look through stays plain, and the one after it does not", () => {
    const html = renderWhole(`${"**a* ".repeat(2_000)}\n\n**end**`);

    expect(html).toContain("**a* **a*");
    expect(html).toContain("<strong>end</strong>");
  });
});
