/**
 * What the page keeps in the browser's plain storage, for good or for a tab.
 *
 * Whatever is kept there has a name that begins with the page's own, so that all of it is found
 * without a list.
 */

import { parse } from "./shape";

const prefix = "chatserve:";

/** Return what a storage has under a name; nothing where it is no JSON, or the browser refuses. */
export function readJson(open: () => Storage, name: string): unknown {
  try {
    return parse(open().getItem(name));
  } catch {
    return undefined;
  }
}

export function eraseStorage(): void {
  erase(() => localStorage);
  erase(() => sessionStorage);
}

function erase(open: () => Storage): void {
  try {
    const storage = open();
    const names = Object.keys(storage).filter((name) => name.startsWith(prefix));
    for (const name of names) storage.removeItem(name);
  } catch {
    // A browser that refuses its storage has kept nothing there.
  }
}
