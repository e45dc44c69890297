import { beforeEach, describe, expect, test } from "vitest";

import { Drafts } from "../src/input/drafts";
import { isLarge } from "../src/input/large_paste";
import { toText } from "../src/input/text_file";
import { Unsent } from "../src/input/unsent";

let drafts: Drafts;
let unsent: Unsent;

beforeEach(() => {
  drafts = new Drafts();
  unsent = new Unsent(drafts);
});

const namesOf = (sessionId: string | null) => unsent.attachmentsOf(sessionId).map(({ name }) => name);

test.each([
  ["few lines", "line\n".repeat(199), false],
  ["many lines", "line\n".repeat(201), true],
  ["few characters", "x".repeat(8_000), false],
  ["many characters", "x".repeat(8_001), true],
])("a paste of %s is large: %s", (_, text, expected) => {
  expect(isLarge(text)).toBe(expected);
});

describe("what is attached", () => {
  test("belongs to its session, and goes with it when it gets an id", () => {
    unsent.attachText(null, "long");

    expect(namesOf("conv_1")).toEqual([]);
    unsent.move(null, "conv_1");
    expect([namesOf(null), namesOf("conv_1")]).toEqual([[], ["pasted text"]]);
  });

  test("can be taken off, or be put into the text", () => {
    drafts.set(null, "Look:");
    unsent.attachText(null, "one");
    unsent.attachText(null, "two");

    unsent.detach(null, unsent.attachmentsOf(null)[0]!);
    unsent.inline(null, unsent.attachmentsOf(null)[0]!);

    expect(drafts.of(null)).toBe("Look:\ntwo");
    expect(namesOf(null)).toEqual([]);
  });

  test("is enough for a message, and gone from the composer once that is cleared", () => {
    expect(unsent.isEmpty(null)).toBe(true);
    unsent.attachText(null, "long");
    expect(unsent.isEmpty(null)).toBe(false);

    unsent.clear(null);

    expect(unsent.messageOf(null)).toBe("");
  });

  test("comes back as it was when the message is refused", () => {
    drafts.set(null, "Look:");
    unsent.attachText(null, "long\n");
    const message = unsent.messageOf(null);
    unsent.clear(null);

    unsent.putBack(null, message);

    expect(unsent.messageOf(null)).toBe(message);
    expect(drafts.of(null)).toBe("Look:");
    expect(namesOf(null)).toEqual(["pasted text"]);
  });

  test("does not come back over what was attached since", () => {
    unsent.attachText(null, "newer");

    unsent.putBack(null, "older");

    expect(drafts.of(null)).toBe("");
    expect(namesOf(null)).toEqual(["pasted text"]);
  });
});

describe("a file", () => {
  test("of text is attached under its name", async () => {
    await unsent.attachFiles(null, [new File(["a\n"], "a.py"), new File(["b"], "b.txt")], 100);

    expect(namesOf(null)).toEqual(["a.py", "b.txt"]);
    expect(unsent.problem.value).toBeNull();
  });

  test.each([
    ["binary", new File([new Uint8Array([0x89, 0x50, 0xff])], "a.png"), /a\.png.* text/],
    ["too large", new File(["x".repeat(200)], "b.txt"), /b\.txt.*200 B.*100 B/],
    ["empty", new File([], "c.txt"), /c\.txt.*empty/],
  ])("that is %s is refused in words, and does not keep others out", async (_, file, words) => {
    await unsent.attachFiles(null, [file, new File(["ok"], "ok.txt")], 100);

    expect(namesOf(null)).toEqual(["ok.txt"]);
    expect(unsent.problem.value).toMatch(words);
  });

  test.each([
    ["UTF-8", [0xc3, 0xa9], "é"],
    ["UTF-8 with a mark of its order", [0xef, 0xbb, 0xbf, 0x61], "a"],
    ["Latin-1", [0xe9, 0x61], null],
    ["zeros", [0x61, 0x00], null],
  ])("in %s", (_, bytes, text) => {
    expect(toText(new Uint8Array(bytes).buffer)).toBe(text);
  });
});
