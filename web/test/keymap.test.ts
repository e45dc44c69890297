import { describe, expect, test } from "vitest";

import { commandOf, type Command, type Field, type KeyPress } from "../src/keys/keymap";

const noField = null;
const composer = (isEmpty: boolean): Field => ({ isEmpty, isComposer: true });
const search: Field = { isEmpty: true, isComposer: false };

function press(fields: Partial<KeyPress>): KeyPress {
  const modifiers = { ctrlKey: false, metaKey: false, shiftKey: false, altKey: false };
  return { key: "", code: "", keyCode: 0, isComposing: false, ...modifiers, ...fields };
}

const ctrl = (key: string, more: Partial<KeyPress> = {}) => press({ key, ctrlKey: true, ...more });
const cmd = (key: string, more: Partial<KeyPress> = {}) => press({ key, metaKey: true, ...more });
const alt = (key: string) => press({ key, altKey: true });

describe("keys mean commands", () => {
  test.each<[string, KeyPress, Field | null, Command | null]>([
    ["search", ctrl("k"), composer(false), "search"],
    ["search, with Caps Lock", ctrl("K"), noField, "search"],
    ["search, on a Russian board", ctrl("л", { code: "KeyK" }), noField, "search"],
    ["not search, where that place writes another letter", ctrl("t", { code: "KeyK" }), noField, null],
    ["a new chat", ctrl("O", { shiftKey: true }), noField, "newChat"],
    ["opening a file stays the browser's", ctrl("o"), noField, null],
    ["the list", ctrl("b"), composer(false), "list"],
    ["the inspector", ctrl("."), composer(true), "inspector"],
    ["closing or stopping", press({ key: "Escape" }), composer(false), "closeOrStop"],
    ["the last message", press({ key: "ArrowUp" }), composer(true), "editLast"],
    ["moving in a text", press({ key: "ArrowUp" }), composer(false), null],
    ["moving in another field", press({ key: "ArrowUp" }), search, null],
    ["scrolling", press({ key: "ArrowUp" }), noField, null],
    ["the version before", alt("ArrowLeft"), composer(true), "previousBranch"],
    ["the version after", alt("ArrowRight"), noField, "nextBranch"],
    ["no other version while a message is written", alt("ArrowLeft"), composer(false), null],
    ["nor in another field", alt("ArrowRight"), { isEmpty: false, isComposer: false }, null],
    ["the list of keys", press({ key: "?", shiftKey: true }), noField, "help"],
    ["a question mark in a text", press({ key: "?", shiftKey: true }), composer(true), null],
    ["a letter", press({ key: "k" }), noField, null],
    ["more keys than asked for", ctrl("k", { altKey: true }), noField, null],
    ["the other system's key", cmd("k"), noField, null],
  ])("%s", (_, key, field, command) => {
    expect(commandOf(key, field, false)).toBe(command);
  });
});

describe("on a Mac", () => {
  test.each<[string, KeyPress, Field | null, Command | null]>([
    ["Cmd takes the place of Ctrl", cmd("k"), composer(false), "search"],
    ["Ctrl stays with the field", ctrl("k"), composer(false), null],
    ["Option moves by words where there are words", alt("ArrowLeft"), composer(false), null],
    ["and changes versions where there are none", alt("ArrowLeft"), composer(true), "previousBranch"],
  ])("%s", (_, key, field, command) => {
    expect(commandOf(key, field, true)).toBe(command);
  });
});

test("nothing is a command while an input method composes", () => {
  const keys = [
    ctrl("k"),
    press({ key: "Escape" }),
    press({ key: "ArrowUp" }),
    alt("ArrowLeft"),
    press({ key: "?" }),
  ];
  const taken = keys.flatMap((key) => [
    { ...key, isComposing: true },
    { ...key, key: "Process", keyCode: 229 },
  ]);

  expect(taken.map((key) => commandOf(key, composer(true), false))).toEqual(taken.map(() => null));
});
