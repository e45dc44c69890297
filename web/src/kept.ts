/**
 * What the page keeps in the browser's plain storage.
 *
 * Whatever is kept there has a name that begins with the page's own, so that all of it is found
 * without a list.
 */

const prefix = "chatserve:";

export function eraseStorage(): void {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
  for (const name of names) localStorage.removeItem(name);
}
