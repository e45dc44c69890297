import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";

import type { App } from "../src/app";
import type { Entry } from "../src/chat/entries";
import { SiblingSwitch } from "../src/view/sibling_switch";

const siblings = ["a", "b", "c"];

function render(key: string, among = siblings): string {
  const entry = { key, siblings: among } as unknown as Entry;
  return renderToString(<SiblingSwitch app={{} as App} entry={entry} />);
}

test.each([
  ["a", "1/3", [true, false]],
  ["b", "2/3", [false, false]],
  ["c", "3/3", [false, true]],
])("%s is %s, and there is a way to what is before and after it alone", (key, place, isDisabled) => {
  const html = render(key);

  const buttons = [...html.matchAll(/<button[^>]*>/g)].map(([tag]) => tag);
  expect(html.replaceAll(/<[^>]*>/g, "")).toBe(place);
  expect(buttons.map((tag) => / disabled/.test(tag))).toEqual(isDisabled);
  expect(buttons.map((tag) => /aria-label="(\w+)/.exec(tag)?.[1])).toEqual(["Previous", "Next"]);
});

test("one version alone has nothing to switch", () => {
  expect(render("a", ["a"])).toBe("");
});
