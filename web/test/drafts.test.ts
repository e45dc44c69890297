import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Drafts } from "../src/input/drafts";
import { placeOfHeld, placeOfOutgoing } from "../src/input/places";
import { FakeLocks, FakeTab } from "./fakes";

const day = 86_400_000;

let storage: Map<string, string>;
let locks: FakeLocks;
let tab: FakeTab;

beforeEach(() => {
  vi.useFakeTimers();
  storage = new Map();
  locks = new FakeLocks();
  tab = new FakeTab();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  FakeLocks.isSlow = false;
});

/** The drafts of a page that was just opened, or reloaded, by somebody in a tab. */
async function visit(owner: string | null = "acme/ann", where = tab): Promise<Drafts> {
  locks.release(where);
  where.enter(locks, storage);
  const drafts = new Drafts();
  await drafts.restore(owner);
  return drafts;
}

/** A tab is closed once its drafts are kept. */
function close(where: FakeTab): void {
  wait();
  locks.release(where);
}

const wait = () => vi.advanceTimersByTime(500);

/** Tell a tab what the storage has now, as the browser does. */
function tell(drafts: Drafts): void {
  drafts.follow({ key: "chatserve:drafts", newValue: storage.get("chatserve:drafts") ?? null });
}

test("a draft is there again after a reload, each in its session", async () => {
  const drafts = await visit();
  drafts.set(null, "For a new chat");
  drafts.set("conv_1", "For an old one");
  wait();

  const again = await visit();

  expect(again.of(null)).toBe("For a new chat");
  expect(again.of("conv_1")).toBe("For an old one");
});

test("typing is not written with every key, and written at once when the page goes", async () => {
  const drafts = await visit();
  drafts.set(null, "A");
  const early = storage.get("chatserve:drafts") ?? "";
  drafts.set(null, "An");
  drafts.keep();

  expect(early).not.toContain('"A"');
  expect((await visit()).of(null)).toBe("An");
});

test("what was sent or deleted does not come back", async () => {
  const drafts = await visit();
  drafts.set("conv_1", "Hello");
  wait();
  drafts.set("conv_1", "");
  wait();

  expect((await visit()).of("conv_1")).toBe("");
});

test.each(["acme/bob", "other/ann"])("%s does not see what ann of acme wrote", async (owner) => {
  (await visit()).set(null, "Private");
  wait();

  expect((await visit(owner)).of(null)).toBe("");
  expect((await visit("acme/ann")).of(null)).toBe("");
});

test("without a server the last user's drafts are there", async () => {
  (await visit()).set(null, "Hello");
  wait();

  expect((await visit(null)).of(null)).toBe("Hello");
});

test("who logs out leaves nothing", async () => {
  const drafts = await visit();
  drafts.set(null, "Private");
  drafts.erase();
  drafts.keep();
  wait();

  expect(drafts.of(null)).toBe("");
  expect([...storage.values()].join()).not.toContain("Private");
});

test("what is typed before the owner is known stays, and what was kept is held", async () => {
  (await visit()).set(null, "Old");
  wait();
  locks.release(tab);
  const drafts = new Drafts();
  drafts.set(null, "New");

  await drafts.restore("acme/ann");
  wait();

  for (const each of [drafts, await visit()]) {
    expect(each.of(null)).toBe("New");
    expect(each.of(placeOfHeld(null))).toBe("Old");
  }
});

test("a connection that comes back leaves what is being written and sent alone", async () => {
  const drafts = await visit();
  drafts.set(null, "Hello");
  drafts.set(placeOfOutgoing("conv_1", "a"), "On its way");
  wait();

  await drafts.restore("acme/ann");

  expect(drafts.of(null)).toBe("Hello");
  expect(drafts.of(placeOfOutgoing("conv_1", "a"))).toBe("On its way");
  expect(drafts.of("conv_1")).toBe("");
});

test("beyond the room there is, the texts changed last are kept, and that is told", async () => {
  const drafts = await visit();
  drafts.set("conv_1", "a".repeat(300_000));
  drafts.set("conv_2", "b".repeat(300_000));
  drafts.set("conv_3", "c".repeat(900_000));
  wait();

  const again = await visit();

  expect(drafts.isRefused.value).toBe(true);
  expect(["conv_1", "conv_2", "conv_3"].map((id) => again.of(id).length)).toEqual([0, 300_000, 0]);
});

test("a draft that nobody has changed for a month is gone", async () => {
  (await visit()).set("conv_1", "Hello");
  wait();
  await vi.advanceTimersByTimeAsync(31 * day);
  (await visit()).set("conv_2", "Later");
  wait();

  expect((await visit()).of("conv_1")).toBe("");
});

test.each(["{", "[]", "null", '{"owner":"acme/ann"}'])("storage that holds %s is empty", async (text) => {
  storage.set("chatserve:drafts", text);

  expect((await visit()).of(null)).toBe("");
});

test("a browser without storage keeps drafts as long as the page, and that is told", async () => {
  const drafts = await visit();
  vi.stubGlobal("localStorage", {
    getItem: () => { throw new Error("denied"); },
    setItem: () => { throw new Error("denied"); },
  });
  const before = drafts.isRefused.value;
  drafts.set(null, "Hello");
  wait();

  expect(drafts.of(null)).toBe("Hello");
  expect([before, drafts.isRefused.value]).toEqual([false, true]);
});

test("what was on its way when the page went is in its composer again, or held beside it", async () => {
  const drafts = await visit();
  drafts.set(placeOfOutgoing("conv_1", "a"), "First");
  drafts.set(placeOfOutgoing("conv_2", "b"), "Second");
  drafts.set("conv_2", "Newer");
  wait();

  const again = await visit();

  expect(again.of("conv_1")).toBe("First");
  expect([again.of("conv_2"), again.of(placeOfHeld("conv_2"))]).toEqual(["Newer", "Second"]);
});

describe("of two tabs", () => {
  const other = () => new FakeTab();

  test("each has a new chat of its own, also after a reload", async () => {
    const second = other();
    (await visit()).set(null, "One");
    wait();
    const fresh = await visit("acme/ann", second);
    const before = fresh.of(null);
    fresh.set(null, "Two");
    wait();

    expect(before).toBe("");
    expect((await visit()).of(null)).toBe("One");
    expect((await visit("acme/ann", second)).of(null)).toBe("Two");
  });

  test("one that is duplicated has its own new chat from then on", async () => {
    (await visit()).set(null, "One");
    wait();
    const copy = other();
    for (const [name, value] of tab.session) copy.session.set(name, value);

    const drafts = await visit("acme/ann", copy);
    drafts.set(null, "Two");
    wait();

    expect((await visit()).of(null)).toBe("One");
    expect((await visit("acme/ann", copy)).of(null)).toBe("Two");
  });

  test("each holds its name in a slow browser, too", async () => {
    FakeLocks.isSlow = true;
    (await visit()).set(null, "One");
    wait();
    const copy = other();
    for (const [name, value] of tab.session) copy.session.set(name, value);

    expect((await visit("acme/ann", copy)).of(null)).toBe("");
    expect((await visit()).of(null)).toBe("One");
  });

  test("one that is closed leaves its new chat to the next new one, once", async () => {
    (await visit()).set(null, "Left");
    close(tab);

    const next = await visit("acme/ann", other());
    const third = await visit("acme/ann", other());

    expect(next.of(null)).toBe("Left");
    expect(third.of(null)).toBe("");
  });

  test("one that is closed leaves nothing to a tab that is only reloaded", async () => {
    const second = other();
    await visit("acme/ann", second);
    (await visit()).set(null, "Left");
    close(tab);

    expect((await visit("acme/ann", second)).of(null)).toBe("");
    expect((await visit("acme/ann", other())).of(null)).toBe("Left");
  });

  test("one does not take back what another is sending", async () => {
    (await visit()).set(placeOfOutgoing("conv_1", "a"), "On its way");
    wait();

    expect((await visit("acme/ann", other())).of("conv_1")).toBe("");
  });

  test("one that is not known to be closed is left alone for a day", async () => {
    (await visit()).set(null, "Left");
    wait();
    vi.stubGlobal("navigator", {});
    const early = new Drafts();
    vi.stubGlobal("sessionStorage", undefined);
    await early.restore("acme/ann");
    await vi.advanceTimersByTimeAsync(2 * day);
    const late = new Drafts();
    await late.restore("acme/ann");

    expect([early.of(null), late.of(null)]).toEqual(["", "Left"]);
  });

  test("both keep each other's drafts of conversations", async () => {
    const first = await visit();
    const second = await visit("acme/ann", other());
    first.set("conv_1", "One");
    wait();
    second.set("conv_2", "Two");
    wait();

    const drafts = await visit("acme/ann", other());

    expect([drafts.of("conv_1"), drafts.of("conv_2")]).toEqual(["One", "Two"]);
  });

  test("one shows what was written in the other, and its end", async () => {
    const first = await visit();
    const second = await visit("acme/ann", other());
    first.set("conv_1", "One");
    wait();
    tell(second);
    const shown = second.of("conv_1");
    first.set("conv_1", "");
    wait();
    tell(second);

    expect([shown, second.of("conv_1")]).toEqual(["One", ""]);
  });

  test("one keeps what was written in it when the other sends something else", async () => {
    const first = await visit();
    const second = await visit("acme/ann", other());
    second.set("conv_1", "I am writing");
    wait();
    first.set("conv_1", "Something else");
    wait();
    tell(second);
    first.move("conv_1", placeOfOutgoing("conv_1", "a"));
    first.keep();
    tell(second);
    wait();

    expect(second.of("conv_1")).toBe("I am writing");
    expect((await visit("acme/ann", other())).of("conv_1")).toBe("I am writing");
  });

  test("one is rid of what the other sends of it", async () => {
    const first = await visit();
    first.set("conv_1", "Hello");
    wait();
    const second = await visit("acme/ann", other());
    second.move("conv_1", placeOfOutgoing("conv_1", "a"));
    second.keep();
    tell(first);

    expect(first.of("conv_1")).toBe("");
  });
});
