import { expect, test } from "vitest";

import { EnterGuard, type EnterKey } from "../src/input/enter_guard";

function key(fields: Partial<EnterKey> = {}): EnterKey {
  return {
    key: "Enter",
    shiftKey: false,
    isComposing: false,
    keyCode: 13,
    timeStamp: 1000,
    ...fields,
  };
}

test("Enter sends", () => {
  expect(new EnterGuard().isSend(key())).toBe(true);
});

test.each([
  ["Shift and Enter", { shiftKey: true }],
  ["another key", { key: "a", keyCode: 65 }],
  ["Enter during a composition", { isComposing: true }],
  ["Enter that an input method took", { keyCode: 229 }],
])("%s does not send", (_, fields) => {
  expect(new EnterGuard().isSend(key(fields))).toBe(false);
});

test("Safari's Enter right after the end of a composition does not send, the next one does", () => {
  const guard = new EnterGuard();
  guard.onCompositionEnd(1000);

  expect(guard.isSend(key({ timeStamp: 1003 }))).toBe(false);
  expect(guard.isSend(key({ timeStamp: 1400 }))).toBe(true);
});

test("an Enter that commits in Chromium's order does not block the one that sends", () => {
  const guard = new EnterGuard();
  const commit = guard.isSend(key({ isComposing: true, keyCode: 229, timeStamp: 999 }));
  guard.onCompositionEnd(1000);

  expect(commit).toBe(false);
  expect(guard.isSend(key({ timeStamp: 1500 }))).toBe(true);
});
