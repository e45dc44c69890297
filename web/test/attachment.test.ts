import { describe, expect, test } from "vitest";

import { newAttachment, piecesOf, takeApart, withAttachments } from "../src/input/attachment";
import { oversizeWords, wireBytes } from "../src/input/message_size";

const named = (message: string) =>
  piecesOf(message).map((piece) => (typeof piece === "string" ? piece : [piece.name, piece.text]));

describe("an attachment in a message", () => {
  test("is a fenced block that names its file", () => {
    const message = withAttachments("Read this:", [newAttachment("notes.md", "# Notes\n")]);

    expect(message).toBe('Read this:\n\n```md file="notes.md"\n# Notes\n\n```');
  });

  test("has a fence that nothing in it can end", () => {
    const text = "```\ncode\n```\n`````\n";
    const message = withAttachments("", [newAttachment("a.md", text)]);

    expect(message.split("\n")[0]).toBe('``````md file="a.md"');
    expect(named(message)).toEqual([["a.md", text]]);
  });

  test.each([
    ["nothing said", "", ["one"]],
    ["nothing attached", "Hello\n\nthere ", []],
    ["several files", "Compare", ["a\n", "b\n\n"]],
    ["line ends at the edges", "Compare\n\n", ["\n\na"]],
    ["something like a block in it", "See", ['```py file="x.py"\n1\n```']],
    ["a block that was typed", '```py file="x.py"\n1\n```\nWhat is this?', ["b"]],
  ])("comes apart as it was put together: %s", (_, text, texts) => {
    const attachments = texts.map((each, index) => newAttachment(`file ${index}.txt`, each));

    const parts = takeApart(withAttachments(text, attachments));

    expect(parts.text).toBe(text);
    expect(parts.attachments.map(({ name, text: each }) => [name, each])).toEqual(
      attachments.map(({ name, text: each }) => [name, each]),
    );
  });

  test("stands in its place between what was said", () => {
    expect(named('First\n```py file="x.py"\n1\n```\nThen ```py is code')).toEqual([
      "First",
      ["x.py", "1"],
      "Then ```py is code",
    ]);
  });

  test.each([
    ["an ordinary fence", "```python\nprint()\n```"],
    ["a block that stays open", '```py file="x.py"\n1\n'],
    ["a shorter fence at the end", '````py file="x.py"\n1\n```'],
  ])("is not seen in %s", (_, message) => {
    expect(piecesOf(message).every((piece) => typeof piece === "string")).toBe(true);
  });

  test("is not seen inside another, and is seen after one that stays open", () => {
    const inner = '```py file="x.py"\n1\n```';

    expect(named(`\`\`\`\`py file="o.py"\n${inner}\n\`\`\`\`\nEnd`)).toEqual([["o.py", inner], "End"]);
    expect(named(`\`\`\`\`py file="o.py"\n${inner}`)).toEqual(['````py file="o.py"', ["x.py", "1"]]);
  });

  test("may be empty", () => {
    expect(named('```py file="x.py"\n```')).toEqual([["x.py", ""]]);
  });

  test("costs one look at the message, however many blocks stay open", () => {
    const message = '```x file="a"\n'.repeat(200_000);
    const begun = performance.now();

    expect(piecesOf(message)).toHaveLength(1);
    // Once takes a tenth of a second, once for each block minutes.
    expect(performance.now() - begun).toBeLessThan(20_000);
  });

  test("has a name that cannot break out of its line", () => {
    const message = withAttachments("", [newAttachment('a"`\nb.txt', "text")]);

    expect(named(message)).toEqual([["a b.txt", "text"]]);
  });
});

test("an attachment knows its size", () => {
  expect(newAttachment("a", "é\r\nb\n")).toMatchObject({ text: "é\nb\n", numLines: 2, numBytes: 5 });
  expect(newAttachment("a", "one\ntwo").numLines).toBe(2);
});

test("what an attachment adds to a frame is counted with the text", () => {
  const attachment = newAttachment("a.txt", '"quoted"\n'.repeat(40));
  const message = withAttachments("Hello", [attachment]);

  expect(wireBytes("Hello") + attachment.wireBytes).toBe(wireBytes(message));
  expect(oversizeWords("Hello", 600, attachment.wireBytes)).not.toBeNull();
  expect(oversizeWords("Hello", 2_000, attachment.wireBytes)).toBeNull();
});
