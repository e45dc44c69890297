import { beforeEach, expect, test } from "vitest";

import { Layout } from "../src/layout";
import { isSwipeOut } from "../src/view/dialog";

let layout: Layout;
let resize: (isNarrow: boolean) => void;

beforeEach(() => {
  const query = { matches: false, addEventListener: () => undefined };
  let onChange: () => void;
  layout = new Layout();
  layout.watch(
    Object.assign(query, {
      addEventListener: (_type: string, listener: () => void) => (onChange = listener),
    }),
  );
  resize = (isNarrow) => {
    query.matches = isNarrow;
    onChange();
  };
});

const shown = () => [layout.isListShown.value, layout.isInspectorShown.value];

test("beside a wide page the list is open and the inspector is not, until that is changed", () => {
  expect(shown()).toEqual([true, false]);
  layout.toggleList();
  layout.toggleInspector();
  expect(shown()).toEqual([false, true]);
});

test("a narrow page has one sheet at most, and nothing open to begin with", () => {
  resize(true);
  const first = shown();
  layout.showList();
  const second = shown();
  layout.toggleInspector();

  expect([first, second, shown()]).toEqual([
    [false, false],
    [true, false],
    [false, true],
  ]);
  layout.closeSheet();
  expect(shown()).toEqual([false, false]);
});

test("panels are as they were when the page is wide again", () => {
  layout.toggleInspector();
  resize(true);
  layout.showList();
  resize(false);

  expect(shown()).toEqual([true, true]);
});

test("a dialog takes the place of a sheet", () => {
  resize(true);
  layout.showList();
  layout.showDialog("settings");

  expect(shown()).toEqual([false, false]);
  expect(layout.dialog.value).toBe("settings");
});

test.each([
  ["towards its edge", -80, 10, true],
  ["a little", -40, 0, false],
  ["into the page", 80, 0, false],
  ["rather down", -80, 60, false],
])("a swipe %s", (_, dx, dy, isOut) => {
  const start = { clientX: 200, clientY: 200 };
  const to = (x: number) => ({ clientX: 200 + x, clientY: 200 + dy });

  expect(isSwipeOut(start, to(dx), "start", false)).toBe(isOut);
  expect(isSwipeOut(start, to(-dx), "end", false)).toBe(isOut);
  expect(isSwipeOut(start, to(-dx), "start", true)).toBe(isOut);
});
