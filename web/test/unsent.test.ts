import "fake-indexeddb/auto";

import { IDBFactory } from "fake-indexeddb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Drafts } from "../src/input/drafts";
import { isLarge } from "../src/input/large_paste";
import { placeOfEdit, placeOfHeld } from "../src/input/places";
import { toText } from "../src/input/text_file";
import { Unsent } from "../src/input/unsent";
import { LastSeen } from "../src/sessions/last_seen";
import { FakeLocks, FakeTab } from "./fakes";

let storage: Map<string, string>;
let locks: FakeLocks;
let tab: FakeTab;
let drafts: Drafts;
let unsent: Unsent;

beforeEach(() => {
  vi.stubGlobal("indexedDB", new IDBFactory());
  storage = new Map();
  locks = new FakeLocks();
  tab = new FakeTab();
  tab.enter(locks, storage);
  drafts = new Drafts();
  unsent = new Unsent(drafts);
});

afterEach(() => vi.unstubAllGlobals());

/** Open the page, or reload it. */
async function visit(where = tab, owner = "acme/ann"): Promise<void> {
  drafts.keep();
  locks.release(where);
  where.enter(locks, storage);
  drafts = new Drafts();
  unsent = new Unsent(drafts);
  await unsent.restore(owner, new LastSeen().belongTo(owner));
}

/** Attachments are kept beside what is shown. */
const kept = () => new Promise((resolve) => setTimeout(resolve, 50));

const namesOf = (sessionId: string | null) => unsent.attachmentsOf(sessionId).map(({ name }) => name);
const noIds = {};

test.each([
  ["few lines", "line\n".repeat(199), false],
  ["many lines", "line\n".repeat(201), true],
  ["few characters", "x".repeat(8_000), false],
  ["many characters", "x".repeat(8_001), true],
])("a paste of %s is large: %s", (_, text, expected) => {
  expect(isLarge(text)).toBe(expected);
});

describe("what is attached", () => {
  test("stays for another tab that has just been opened, however soon", async () => {
    await visit();
    unsent.attachText("conv_1", "long");
    await kept();

    new FakeTab().enter(locks, storage);
    await new Unsent(new Drafts()).restore("acme/ann", new LastSeen().belongTo("acme/ann"));
    await visit();

    expect(namesOf("conv_1")).toHaveLength(1);
  });

  test("belongs to its session, and goes with it when it gets an id", () => {
    unsent.attachText(null, "long");

    expect(namesOf("conv_1")).toEqual([]);
    unsent.readdress(null, "conv_1");
    expect([namesOf(null), namesOf("conv_1")]).toEqual([[], ["pasted text"]]);
  });

  test("can be taken off, or be put into the text", () => {
    drafts.set(null, "Look:");
    unsent.attachText(null, "one");
    unsent.attachText(null, "two");

    unsent.detach(null, unsent.attachmentsOf(null)[0]!);
    unsent.inline(null, unsent.attachmentsOf(null)[0]!);

    expect(drafts.of(null)).toBe("Look:\ntwo");
    expect(namesOf(null)).toEqual([]);
  });

  test("is enough for a message, and gone from the composer once that is cleared", () => {
    expect(unsent.isEmpty(null)).toBe(true);
    unsent.attachText(null, "long");
    expect(unsent.isEmpty(null)).toBe(false);

    unsent.clear(null);

    expect(unsent.messageOf(null)).toBe("");
  });

  test("is there again after a reload, with its text", async () => {
    await visit();
    drafts.set("conv_1", "Look:");
    unsent.attachText("conv_1", "long\n");
    const message = unsent.messageOf("conv_1");
    await kept();

    await visit();

    expect(unsent.messageOf("conv_1")).toBe(message);
  });

  test("before it is known whose the page is, is kept too", async () => {
    unsent.attachText(null, "early");
    await unsent.restore("acme/ann", new LastSeen().belongTo("acme/ann"));
    await kept();

    await visit();

    expect(namesOf(null)).toEqual(["pasted text"]);
  });

  test("and was taken off or sent does not come back", async () => {
    await visit();
    unsent.attachText("conv_1", "one");
    unsent.attachText("conv_2", "two");
    await kept();
    unsent.detach("conv_1", unsent.attachmentsOf("conv_1")[0]!);
    unsent.onAccepted("conv_2", { text: unsent.take("conv_2", null), itemIds: noIds });
    await kept();

    await visit();

    expect([namesOf("conv_1"), namesOf("conv_2")]).toEqual([[], []]);
    expect(await numKept()).toBe(0);
  });

  test("is seen by no other user, nor after a logout", async () => {
    await visit();
    unsent.attachText("conv_1", "private");
    await kept();

    await visit(new FakeTab(), "acme/bob");

    expect(namesOf("conv_1")).toEqual([]);
    expect(await numKept()).toBe(0);
  });

  test("in one tab is there in another one", async () => {
    await visit();
    unsent.attachText("conv_1", "shared");
    await kept();
    drafts.keep();

    await visit(new FakeTab());

    expect(namesOf("conv_1")).toEqual(["pasted text"]);
  });

  test("and cannot be kept is told of once, and can be sent", async () => {
    await visit();
    vi.stubGlobal("indexedDB", { open: () => { throw new DOMException("denied", "SecurityError"); } });
    drafts = new Drafts();
    unsent = new Unsent(drafts);
    await unsent.restore("acme/ann", Promise.resolve());
    const before = unsent.storageProblem.value;
    unsent.attachText("conv_1", "long");
    await kept();
    const told = unsent.storageProblem.value;
    const message = unsent.take("conv_1", null);
    unsent.attachText("conv_1", "longer");
    await kept();

    expect(before).toBeNull();
    expect(told).toContain("browser");
    expect(message).toContain("long");
    expect(unsent.storageProblem.value).toBeNull();
  });

  test("beyond what the browser is asked to keep lasts as long as the page", async () => {
    await visit();
    unsent.attachText("conv_1", "x".repeat(21_000_000));
    await kept();

    expect(unsent.storageProblem.value).not.toBeNull();
    expect(namesOf("conv_1")).toEqual(["pasted text"]);
    expect(await numKept()).toBe(0);
  });
});

/** Return how many attachments the browser's database has. */
async function numKept(): Promise<number> {
  const request = indexedDB.open("chatserve");
  await new Promise((resolve) => (request.onsuccess = resolve));
  const count = request.result.transaction("attachments").objectStore("attachments").count();
  await new Promise((resolve) => (count.onsuccess = resolve));
  return count.result;
}

describe("a message on its way", () => {
  beforeEach(() => visit());

  test("has left the composer, and comes back as it was when it is refused", () => {
    drafts.set("conv_1", "Look:");
    unsent.attachText("conv_1", "long\n");
    const message = unsent.take("conv_1", null);
    const between = unsent.messageOf("conv_1");

    unsent.onRefused("conv_1", message);

    expect(between).toBe("");
    expect(unsent.messageOf("conv_1")).toBe(message);
    expect(drafts.of("conv_1")).toBe("Look:");
    expect(namesOf("conv_1")).toEqual(["pasted text"]);
  });

  test("that is refused is held beside what was written since, until the reader wants it", () => {
    drafts.set("conv_1", "older");
    const message = unsent.take("conv_1", null);
    unsent.attachText("conv_1", "newer");

    unsent.onRefused("conv_1", message);
    const held = unsent.messageOf(placeOfHeld("conv_1"));
    const composer = drafts.of("conv_1");
    unsent.release("conv_1");

    expect([held, composer]).toEqual(["older", ""]);
    expect(drafts.of("conv_1")).toBe("older");
    expect(namesOf("conv_1")).toEqual(["pasted text"]);
  });

  test("is in its conversation again when the page is gone before the server has it", async () => {
    drafts.set("conv_1", "Look:");
    unsent.attachText("conv_1", "long");
    await kept();
    const message = unsent.take("conv_1", null);

    await visit();

    expect(unsent.messageOf("conv_1")).toBe(message);
  });

  test("of a new chat is in the session that was made for it", async () => {
    drafts.set(null, "Hello");
    unsent.redirect(unsent.take(null, null), "conv_1");

    await visit();

    expect([drafts.of(null), drafts.of("conv_1")]).toEqual(["", "Hello"]);
  });

  test("that is refused twice is sent again from wherever it is", async () => {
    drafts.set("conv_1", "older");
    const message = unsent.take("conv_1", null);
    drafts.set("conv_1", "newer");
    unsent.onRefused("conv_1", message);

    unsent.takeAgain("conv_1", message);
    unsent.onAccepted("conv_1", { text: message, itemIds: noIds });
    await visit();

    expect([drafts.of("conv_1"), drafts.of(placeOfHeld("conv_1"))]).toEqual(["newer", ""]);
  });

  test("in the place of another one stays in its editor until the server has it", () => {
    const place = placeOfEdit("conv_1", "msg_1");
    unsent.put(place, "Otherwise", []);
    unsent.onRefused("conv_1", "Otherwise");
    const refused = [drafts.of(place), drafts.of("conv_1")];

    unsent.onAccepted("conv_1", { text: "Otherwise", itemIds: noIds });

    expect(refused).toEqual(["Otherwise", ""]);
    expect(drafts.of(place)).toBe("");
  });
});

test("a change of a message that the server has just named stays with it", async () => {
  await visit();
  unsent.put(placeOfEdit("conv_1", "user-1"), "Otherwise", []);

  unsent.onAccepted("conv_1", { text: null, itemIds: { "user-1": "msg_1" } });
  await visit();

  expect(drafts.of(placeOfEdit("conv_1", "msg_1"))).toBe("Otherwise");
});

test("a session that is deleted leaves nothing", async () => {
  await visit();
  drafts.set("conv_1", "Hello");
  unsent.take("conv_1", null);
  drafts.set("conv_1", "More");
  unsent.put(placeOfEdit("conv_1", "msg_1"), "Otherwise", []);
  drafts.set("conv_10", "Another one");

  unsent.clearSession("conv_1");
  await visit();

  expect(drafts.places()).toEqual(["conv_10"]);
});

describe("a file", () => {
  test("of text is attached under its name", async () => {
    await unsent.attachFiles(null, [new File(["a\n"], "a.py"), new File(["b"], "b.txt")], 100);

    expect(namesOf(null)).toEqual(["a.py", "b.txt"]);
    expect(unsent.problem.value).toBeNull();
  });

  test.each([
    ["binary", new File([new Uint8Array([0x89, 0x50, 0xff])], "a.png"), /a\.png.* text/],
    ["too large", new File(["x".repeat(200)], "b.txt"), /b\.txt.*200 B.*100 B/],
    ["empty", new File([], "c.txt"), /c\.txt.*empty/],
  ])("that is %s is refused in words, and does not keep others out", async (_, file, words) => {
    await unsent.attachFiles(null, [file, new File(["ok"], "ok.txt")], 100);

    expect(namesOf(null)).toEqual(["ok.txt"]);
    expect(unsent.problem.value).toMatch(words);
  });

  test.each([
    ["UTF-8", [0xc3, 0xa9], "é"],
    ["UTF-8 with a mark of its order", [0xef, 0xbb, 0xbf, 0x61], "a"],
    ["Latin-1", [0xe9, 0x61], null],
    ["zeros", [0x61, 0x00], null],
  ])("in %s", (_, bytes, text) => {
    expect(toText(new Uint8Array(bytes).buffer)).toBe(text);
  });
});
