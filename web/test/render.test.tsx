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
      "<p>![a cat](https://example.org/cat.png)</p>",
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
    expect(render("7. a\n8. b")).toContain('<ol start="7"><li>a</li>');
  });

  test("a table keeps its alignment in classes", () => {
    const html = render("| a | b |\n| - | -: |\n| 1 | 2 |");

    expect(html).toContain('<th class="align-right">b</th>');
    expect(html).toContain("<td>1</td>");
  });

  test("a task list shows boxes that cannot be changed", () => {
    expect(render("- [x] done")).toMatch(/<input type="checkbox" checked disabled\/?>/);
  });

  test("headings rank below those of the page", () => {
    expect(render("# One\n\n###### Six")).toContain("<h3>One</h3><h6>Six</h6>");
  });
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
