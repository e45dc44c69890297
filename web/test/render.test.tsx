import { renderToString } from "preact-render-to-string";
import { describe, expect, test } from "vitest";

import { Markdown } from "../src/markdown/markdown";

function render(text: string, isGrowing = false): string {
  return renderToString(<Markdown text={text} isGrowing={isGrowing} />);
}

/** The names of all elements in a piece of HTML. */
function elementsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/<([a-z][a-z0-9-]*)/g)].map((match) => match[1]!));
}

const known = new Set(
  (
    "div p ul ol li strong em del code pre figure figcaption span button svg rect path br hr a " +
    "blockquote table thead tbody tr th td h3 h4 h5 h6 input"
  ).split(" "),
);

const attacks = [
  "<script>alert(1)</script>",
  '<img src=x onerror="alert(1)">',
  "<svg/onload=alert(1)>",
  '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](java&#9;script:alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](\u0001javascript:alert(1))",
  "[x](vbscript:msgbox(1))",
  "[x](data:text/html;base64,PHNjcmlwdD4=)",
  "[x](//evil.example)",
  "[x](blob:http://a/b)",
  "<javascript:alert(1)>",
  "![x](javascript:alert(1))",
  '![x](http://a/b.png"onerror="alert(1))',
  '[x](http://a "onmouseover=alert(1) ")',
  "[x]: javascript:alert(1)\n\n[x]",
  "```html\n<script>alert(1)</script>\n```",
  '```"><script>alert(1)</script>\nx\n```',
  "`<script>alert(1)</script>`",
  "| <img src=x onerror=alert(1)> |\n| - |\n| <script>alert(1)</script> |",
  "# <script>alert(1)</script>",
  "- <iframe src=javascript:alert(1)>",
  "> <object data=javascript:alert(1)>",
  "**<style>*{display:none}</style>**",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
];

describe("what a model writes", () => {
  test.each(attacks)("makes no element, handler or address of its own: %s", (attack) => {
    for (const text of [attack, `text ${attack} text`, `- ${attack}`]) {
      const html = render(text);
      const tags = html.match(/<[^>]*>/g) ?? [];

      expect([...elementsOf(html)].filter((name) => !known.has(name))).toEqual([]);
      expect(tags.filter((tag) => /\son[a-z]+=|\ssrc=|\sstyle=/i.test(tag))).toEqual([]);
      expect(html).not.toMatch(/href="(?!https?:\/\/|mailto:)/i);
    }
  });

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
