import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Drafts } from "../src/input/drafts";

let storage: Map<string, string>;

beforeEach(() => {
  vi.useFakeTimers();
  storage = new Map();
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => storage.get(name) ?? null,
    setItem: (name: string, value: string) => storage.set(name, value),
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** The drafts of a page that was just opened by somebody. */
function visit(owner: string | null = "acme/ann"): Drafts {
  const drafts = new Drafts();
  drafts.restore(owner);
  return drafts;
}

const wait = () => vi.advanceTimersByTime(500);

test("a draft is there again after a reload, each in its session", () => {
  const drafts = visit();
  drafts.set(null, "For a new chat");
  drafts.set("conv_1", "For an old one");
  wait();

  const again = visit();

  expect(again.of(null)).toBe("For a new chat");
  expect(again.of("conv_1")).toBe("For an old one");
});

test("typing is not written with every key, and written at once when the page goes", () => {
  const drafts = visit();
  drafts.set(null, "A");
  const early = visit().of(null);
  drafts.set(null, "An");
  drafts.keep();

  expect(early).toBe("");
  expect(visit().of(null)).toBe("An");
});

test("what was sent or deleted does not come back", () => {
  const drafts = visit();
  drafts.set("conv_1", "Hello");
  wait();
  drafts.set("conv_1", "");
  wait();

  expect(visit().of("conv_1")).toBe("");
});

test.each(["acme/bob", "other/ann"])("%s does not see what ann of acme wrote", (owner) => {
  visit().set(null, "Private");
  wait();

  expect(visit(owner).of(null)).toBe("");
  expect(visit("acme/ann").of(null)).toBe("");
});

test("without a server the last user's drafts are there", () => {
  visit().set(null, "Hello");
  wait();

  expect(visit(null).of(null)).toBe("Hello");
});

test("who logs out leaves nothing", () => {
  const drafts = visit();
  drafts.set(null, "Private");
  drafts.erase();
  drafts.keep();
  wait();

  expect(drafts.of(null)).toBe("");
  expect([...storage.values()].join()).not.toContain("Private");
});

test("what is typed before the owner is known wins over what was kept", () => {
  visit().set(null, "Old");
  wait();
  const drafts = new Drafts();
  drafts.set(null, "New");

  drafts.restore("acme/ann");
  wait();

  expect(drafts.of(null)).toBe("New");
  expect(visit().of(null)).toBe("New");
});

test("two tabs keep each other's drafts", () => {
  const first = visit();
  const second = visit();
  first.set("conv_1", "One");
  wait();
  second.set("conv_2", "Two");
  wait();

  const drafts = visit();

  expect([drafts.of("conv_1"), drafts.of("conv_2")]).toEqual(["One", "Two"]);
});

test("beyond the room there is, the texts changed last are kept", () => {
  const drafts = visit();
  drafts.set("conv_1", "a".repeat(300_000));
  drafts.set("conv_2", "b".repeat(300_000));
  drafts.set("conv_3", "c".repeat(900_000));
  wait();

  const again = visit();

  expect(["conv_1", "conv_2", "conv_3"].map((id) => again.of(id).length)).toEqual([0, 300_000, 0]);
});

test.each(["{", "[]", "null", '{"owner":"acme/ann"}'])("storage that holds %s is empty", (text) => {
  storage.set("chatserve:drafts", text);

  expect(visit().of(null)).toBe("");
});

test("a browser without storage keeps drafts as long as the page", () => {
  vi.stubGlobal("localStorage", {
    getItem: () => { throw new Error("denied"); },
    setItem: () => { throw new Error("denied"); },
  });
  const drafts = visit();
  drafts.set(null, "Hello");
  wait();

  expect(drafts.of(null)).toBe("Hello");
});
