/**
 * What the commands of the keyboard do.
 *
 * The one listener to keys of the whole page. Esc does one thing at a time: the browser closes a
 * dialog or a menu, else an editor closes, else the inspector if the focus is in it, else the answer
 * stops. A field that has used a key for itself says so by preventing its default.
 */

import type { App } from "../app";
import { focusMessage, focusSearch } from "../view/focus";
import { commandOf, type Command, type Field } from "./keymap";

export function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.platform);
}

/** Listen until the returned function is called. */
export function listenToKeys(app: App): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || hasOpenLayer()) return;
    const command = commandOf(event, fieldOf(event.target), isMac());
    if (command !== null && run(app, command)) event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

/** Dialogs and menus have their own keys; what lies below them is not reached. */
function hasOpenLayer(): boolean {
  return document.querySelector("dialog:modal, :popover-open") !== null;
}

function fieldOf(target: EventTarget | null): Field | null {
  if (!(target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement)) return null;
  return { isEmpty: target.value === "", isComposer: target.id === "composer" };
}

/** Carry out a command; return whether there was something to do. */
function run(app: App, command: Command): boolean {
  const { layout } = app;
  switch (command) {
    case "search":
      layout.showList();
      focusSearch();
      return true;
    case "newChat":
      app.newChat();
      return true;
    case "list":
      layout.toggleList();
      return true;
    case "help":
      layout.showDialog("keys");
      return true;
    default:
      return app.place.value.kind === "chat" && runInChat(app, command);
  }
}

function runInChat(app: App, command: Command): boolean {
  switch (command) {
    case "inspector":
      app.layout.toggleInspector();
      return true;
    case "closeOrStop":
      return closeOrStop(app);
    case "editLast":
      return editLast(app);
    case "previousBranch":
      return chooseBranch(app, -1);
    case "nextBranch":
      return chooseBranch(app, 1);
    default:
      return false;
  }
}

function closeOrStop({ current: { value: session }, layout }: App): boolean {
  const isEditing = session.entries.value.some(({ key }) => key === session.editing.value);
  if (isEditing) session.editing.value = null;
  // Elsewhere it stays: whoever wants to stop an answer that has just ended would lose it.
  else if (document.activeElement?.closest(".inspector")) layout.toggleInspector();
  else if (session.running.value !== null) session.stop();
  else return false;
  return true;
}

function editLast({ current: { value: session } }: App): boolean {
  if (session.running.value !== null) return false;
  const entry = session.entries.value.findLast(({ kind }) => kind === "user");
  if (entry === undefined) return false;
  session.editing.value = entry.key;
  return true;
}

/** Go to the version before or after the message with the focus, or the last that has several. */
function chooseBranch({ current: { value: session } }: App, by: -1 | 1): boolean {
  const focused = document.activeElement?.closest<HTMLElement>("[data-key]")?.dataset["key"];
  const branching = session.entries.value.filter(({ siblings }) => siblings.length > 1);
  const entry = branching.find(({ key }) => key === focused) ?? branching.at(-1);
  if (entry === undefined) return false;
  session.chooseSibling(entry, by);
  const chosen = entry.siblings[entry.siblings.indexOf(entry.key) + by];
  if (entry.key === focused && chosen !== undefined) focusMessage(chosen);
  return true;
}
