import { afterEach, expect, test, vi } from "vitest";

import { eraseStorage } from "../src/kept";

afterEach(() => vi.unstubAllGlobals());

/** Storage whose names are its properties, as a browser's are. */
class FakeStorage {
  [name: string]: unknown;

  constructor(...names: string[]) {
    for (const name of names) this[name] = "kept";
    Object.defineProperty(this, "removeItem", { value: (name: string) => delete this[name] });
  }
}

function refuse(name: "localStorage" | "sessionStorage"): void {
  vi.stubGlobal(name, undefined);
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => {
      throw new DOMException("denied", "SecurityError");
    },
  });
}

test("all that is the page's is erased, and nothing else", () => {
  const local = new FakeStorage("chatserve:layout", "other");
  const tab = new FakeStorage("chatserve:left-choices", "other");
  vi.stubGlobal("localStorage", local);
  vi.stubGlobal("sessionStorage", tab);

  eraseStorage();

  expect([Object.keys(local), Object.keys(tab)]).toEqual([["other"], ["other"]]);
});

test("storage that is refused leaves the other to be erased", () => {
  const tab = new FakeStorage("chatserve:left-choices");
  vi.stubGlobal("sessionStorage", tab);
  refuse("localStorage");

  eraseStorage();

  expect(Object.keys(tab)).toEqual([]);
});
