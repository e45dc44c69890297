import { expect, test } from "vitest";

import { toJson } from "../src/wire/json";

test("half a character is sent as the sign for one that is lost, in names too", () => {
  const value = { text: "a\ud83d", list: ["\ude00b", { "n\ud83d": "\\\ud83d" }] };

  expect(toJson(value)).toBe('{"text":"a\ufffd","list":["\ufffdb",{"n\ufffd":"\\\\\ufffd"}]}');
});

test.each(["😀", "\\ud83d", "\\\\ude00", '"\n\\', "\u0000\u2028"])(
  "whole characters are sent as they are: %j",
  (text) => {
    expect(JSON.parse(toJson({ text }))).toEqual({ text });
  },
);
