import { renderToString } from "preact-render-to-string";
import { describe, expect, test } from "vitest";

import { Markdown } from "../src/markdown/markdown";

function render(text: string, isGrowing = false): string {
  return renderToString(<Markdown text={text} isGrowing={isGrowing} />);
}

describe("what a model writes", () => {
  test("links leave without a trace of this page", () => {
    expect(render("[docs](https://example.org/a?b=1&amp;c=2)")).toContain(
      '<a href="https://example.org/a?b=1&amp;c=2" target="_blank" ' +
        'rel="noopener noreferrer nofollow">docs</a>',
    );
  });

  test("bare addresses become links", () => {
    expect(render("see https://example.org.")).toContain('<a href="https://example.org"');
    expect(render("write to a@example.org")).toContain('<a href="mailto:a@example.org"');
  });

  test("an image is the text it was written as", () => {
    expect(render("![a cat](https://example.org/cat.png)")).toContain(
      '<p dir="ltr">![a cat](https://example.org/cat.png)</p>',
    );
  });

  test("raw markup is shown as text, in a block and in a line", () => {
    expect(render("<div>\n**bold**\n</div>")).toContain(
      "&lt;div>\n<strong>bold</strong>\n&lt;/div>",
    );
    expect(render("a <b>tag</b>")).toContain("a &lt;b>tag&lt;/b>");
  });

  test("character references are read, unknown ones stay", () => {
    expect(render("5 &lt; 6 &#169; &#x1F389; &nosuch;")).toContain("5 &lt; 6 © 🎉 &amp;nosuch;");
  });

  test("code is shown as it is", () => {
    expect(render("```py\na < b & c\n```")).toContain("<code>a &lt; b &amp; c</code>");
    expect(render("`a &amp; b`")).toContain("<code>a &amp;amp; b</code>");
  });

  test("text in code and mathematics is the text that was written", () => {
    expect(render("```\n$$x$$\n```")).toContain("<code>$$x$$</code>");
    expect(render("`\\(x\\)`")).toContain("<code>\\(x\\)</code>");
  });

  test("a numbered list begins where it was told to", () => {
    expect(render("7. a\n8. b")).toContain('<ol dir="ltr" start="7"><li dir="ltr">a</li>');
  });

  test("a table keeps its alignment in classes", () => {
    const html = render("| a | b |\n| - | -: |\n| 1 | 2 |");

    expect(html).toContain('<th class="align-right" dir="ltr">b</th>');
    expect(html).toMatch(/<td dir(?:="")?>1<\/td>/);
  });

  test("a task list shows boxes that cannot be changed", () => {
    expect(render("- [x] done")).toMatch(/<input type="checkbox" checked disabled\/?>/);
  });

  test("headings rank below those of the page", () => {
    expect(render("# One\n\n###### Six")).toContain('<h3 dir="ltr">One</h3><h6 dir="ltr">Six</h6>');
  });
});

describe("a text in two scripts", () => {
  test("has a direction for each block", () => {
    const html = render("# مرحبا\n\nHello مرحبا\n\nمرحبا hello\n\n> שלום");

    expect(html).toContain('<h3 dir="rtl">');
    expect(html).toContain('<p dir="ltr">Hello');
    expect(html).toContain('<p dir="rtl">مرحبا');
    expect(html).toContain('<blockquote dir="rtl"><p dir="rtl">');
  });

  test("has one for a list, for each of its items, and for cells", () => {
    const list = render("1. واحد\n2. two\n3. 3");
    const table = render("| الاسم | name |\n| - | - |\n| أ | b |");

    expect(list).toMatch(/<ol dir="rtl" start="1"><li dir="rtl">واحد<\/li><li dir="ltr">two<\/li><li dir(?:="")?>3/);
    expect(table).toContain('<table dir="rtl"><thead><tr><th dir="rtl">الاسم</th><th dir="ltr">');
    expect(table).toContain('<td dir="rtl">أ</td><td dir="ltr">b</td>');
  });

  test.each(["`code` ثم نص", "- [x] مهمة", "\\(x\\) عدد", "**`a` نص**", "&nbsp;نص"])(
    "does not take its direction from what is no text: %s",
    (text) => {
      expect(render(text)).toContain('dir="rtl"');
      expect(render(text)).not.toContain('<p dir="ltr"');
    },
  );
});

describe("a growing answer", () => {
  test.each(["text\n`", "text\n``", "text\n~~"])("hides the first marks of a fence: %j", (text) => {
    expect(render(text, true)).toBe(render("text\n", true));
  });

  test("shows an open fence as code", () => {
    expect(render("```js\nlet a", true)).toContain("<code>let a</code>");
  });

  test("hides the first marks of the end of a fence", () => {
    expect(render("```js\nlet a\n``", true)).toContain("<code>let a</code>");
  });

  test("shows the same marks once the answer has ended", () => {
    expect(render("text\n``", false)).toContain("``");
  });
});
