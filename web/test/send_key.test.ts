import { describe, expect, test } from "vitest";

import { EnterGuard } from "../src/input/enter_guard";
import { sends, type SendKey } from "../src/input/send_key";

/** Either the end of a composition, at a time, or a key press. */
type InputEvent = { compositionEnd: number } | { press: SendKey };

const enter = (timeStamp: number, fields: Partial<SendKey> = {}): InputEvent => {
  const modifiers = { shiftKey: false, ctrlKey: false, metaKey: false };
  const press = { key: "Enter", keyCode: 13, isComposing: false, timeStamp, ...modifiers, ...fields };
  return { press };
};

/** Return for each key press of a field whether it sends. */
function replay(events: readonly InputEvent[], enterSends = true): boolean[] {
  const guard = new EnterGuard();
  return events.flatMap((event) => {
    if ("press" in event) return [sends(event.press, guard, enterSends)];
    guard.onCompositionEnd(event.compositionEnd);
    return [];
  });
}

describe("a word is composed and committed by Enter, and a second Enter follows", () => {
  test.each<[string, readonly InputEvent[]]>([
    [
      "Chromium",
      [enter(100, { keyCode: 229, isComposing: true }), { compositionEnd: 101 }, enter(900)],
    ],
    ["Firefox", [enter(100, { isComposing: true }), { compositionEnd: 100 }, enter(900)]],
    ["Safari", [{ compositionEnd: 100 }, enter(102, { keyCode: 229 }), enter(900)]],
    ["Safari, with an ordinary code", [{ compositionEnd: 100 }, enter(102), enter(900)]],
  ])("in the order of %s only the second one sends", (_, events) => {
    expect(replay(events)).toEqual([false, true]);
    expect(replay(events, false)).toEqual([false, false]);
  });
});

test("where Enter makes a line, it sends with Ctrl or Cmd", () => {
  const events = [enter(100), enter(200, { ctrlKey: true }), enter(300, { metaKey: true })];

  expect(replay(events, false)).toEqual([false, true, true]);
});

test("Shift and Enter never sends", () => {
  expect(replay([enter(100, { shiftKey: true })])).toEqual([false]);
});
