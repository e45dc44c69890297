/**
 * Which keys mean which command, wherever the focus is.
 *
 * Owns the table; knows nothing of what a command does. Keys that a browser has a use for (Alt+← goes
 * back) are taken from it only where the command has something to do, which its owner decides.
 */

import { isComposing, type ComposingKey } from "../input/enter_guard";

export type Command =
  | "search"
  | "newChat"
  | "list"
  | "inspector"
  | "closeOrStop"
  | "editLast"
  | "previousBranch"
  | "nextBranch"
  | "help";

export interface Chord {
  readonly command: Command;
  readonly key: string;
  /** The key's place on the board, for layouts on which it writes no Latin letter. */
  readonly code: string;
  /** Ctrl, or Cmd on a Mac. */
  readonly mod?: true;
  readonly shift?: true;
  readonly alt?: true;
}

export const chords: readonly Chord[] = [
  { command: "search", key: "k", code: "KeyK", mod: true },
  { command: "newChat", key: "o", code: "KeyO", mod: true, shift: true },
  { command: "list", key: "b", code: "KeyB", mod: true },
  { command: "inspector", key: ".", code: "Period", mod: true },
  { command: "closeOrStop", key: "Escape", code: "Escape" },
  { command: "editLast", key: "ArrowUp", code: "ArrowUp" },
  { command: "previousBranch", key: "ArrowLeft", code: "ArrowLeft", alt: true },
  { command: "nextBranch", key: "ArrowRight", code: "ArrowRight", alt: true },
];

export interface KeyPress extends ComposingKey {
  key: string;
  code: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

/** The field that has the focus. */
export interface Field {
  isEmpty: boolean;
  isComposer: boolean;
}

/** Return what a key press asks for, or null where it is left to the field or the browser. */
export function commandOf(press: KeyPress, field: Field | null, isMac: boolean): Command | null {
  if (isComposing(press)) return null;
  if (isQuestion(press)) return field === null ? "help" : null;
  const chord = chords.find((each) => isPressed(each, press, isMac));
  if (chord === undefined) return null;
  if (chord.command === "editLast" && !(field?.isComposer && field.isEmpty)) return null;
  // Where there are words, these keys are left to the field, which moves by words with them on a Mac.
  if (chord.alt && field !== null && !field.isEmpty) return null;
  return chord.command;
}

/** A question mark is on another key, with or without Shift, on every layout. */
function isQuestion({ key, ctrlKey, metaKey, altKey }: KeyPress): boolean {
  return key === "?" && !ctrlKey && !metaKey && !altKey;
}

function isPressed(chord: Chord, press: KeyPress, isMac: boolean): boolean {
  const mod = isMac ? press.metaKey : press.ctrlKey;
  const otherMod = isMac ? press.ctrlKey : press.metaKey;
  return (
    isKey(chord, press) &&
    mod === (chord.mod ?? false) &&
    !otherMod &&
    press.shiftKey === (chord.shift ?? false) &&
    press.altKey === (chord.alt ?? false)
  );
}

function isKey({ key, code }: Chord, press: KeyPress): boolean {
  if (press.key.toLowerCase() === key.toLowerCase()) return true;
  const writesLatin = /^[\x20-\x7e]+$/.test(press.key);
  return !writesLatin && press.code === code;
}
