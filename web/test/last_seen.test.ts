import "fake-indexeddb/auto";

import { IDBFactory } from "fake-indexeddb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { ApiError } from "../src/wire/api";
import { LastSeen } from "../src/sessions/last_seen";
import { fakeStore, storedItem, type FakeStore } from "./fakes";

const away = { status: 503, code: "store_unavailable", message: "The store is away." };

let store: FakeStore;

beforeEach(() => {
  vi.stubGlobal("indexedDB", new IDBFactory());
  vi.stubGlobal("document", { baseURI: "http://chat.test/" });
  store = fakeStore();
  store.items = [storedItem("user", "Hello", "msg_1")];
});

afterEach(() => vi.unstubAllGlobals());

/** A page that was just opened by somebody. */
async function visit(owner: string | null): Promise<LastSeen> {
  const lastSeen = new LastSeen();
  await lastSeen.belongTo(owner);
  return lastSeen;
}

async function read(lastSeen: LastSeen, sessionId = "conv_1"): Promise<void> {
  store.session.id = sessionId;
  await lastSeen.readSession(sessionId);
  await kept();
}

/** Copies are made beside what is shown. */
const kept = () => new Promise((resolve) => setTimeout(resolve, 30));

async function codeOf(reading: Promise<unknown>): Promise<string> {
  const error: unknown = await reading.then(() => null, (reason: unknown) => reason);
  return error instanceof ApiError ? error.code : "none";
}

describe("while the server is away", () => {
  test("a session that was read is shown as it was, with its time, after a reload too", async () => {
    await read(await visit("acme/ann"));
    store.refusal = away;

    const shown = await (await visit(null)).readSession("conv_1");

    expect(shown).toMatchObject({ session: store.session, items: store.items });
    expect(shown.seenAtMs).toBeGreaterThan(0);
  });

  test("the list is as it was, without older pages", async () => {
    await (await visit("acme/ann")).readList();
    await kept();
    store.refusal = away;

    const list = await (await visit(null)).readList();

    expect(list.page).toEqual({ data: [store.session], has_more: false });
  });

  test("a session that was never read fails as it would without copies", async () => {
    store.refusal = away;

    expect(await codeOf((await visit("acme/ann")).readSession("conv_1"))).toBe("store_unavailable");
    expect(await codeOf((await visit("acme/ann")).readList())).toBe("store_unavailable");
  });
});

test("what the server tells is not shown as a copy", async () => {
  const { seenAtMs } = await (await visit("acme/ann")).readSession("conv_1");

  expect(seenAtMs).toBeNull();
});

test("a refusal is never covered by a copy", async () => {
  const lastSeen = await visit("acme/ann");
  await read(lastSeen);
  store.refusal = { status: 403, code: "origin_not_allowed", message: "No." };

  expect(await codeOf(lastSeen.readSession("conv_1"))).toBe("origin_not_allowed");
});

test.each(["acme/bob", "other/ann", ""])("%j finds nothing of what ann of acme has read", async (owner) => {
  await read(await visit("acme/ann"));
  await (await visit("acme/ann")).readList();
  await kept();

  const lastSeen = await visit(owner);
  store.refusal = away;

  expect(await codeOf(lastSeen.readSession("conv_1"))).toBe("store_unavailable");
  expect(await codeOf(lastSeen.readList())).toBe("store_unavailable");
});

test("nothing is shown before it is known whose it is", async () => {
  await read(await visit("acme/ann"));
  store.refusal = away;
  const lastSeen = new LastSeen();
  const reading = codeOf(lastSeen.readSession("conv_1"));

  await lastSeen.belongTo("acme/bob");

  expect(await reading).toBe("store_unavailable");
});

test("a deleted session leaves no copy, wherever it was deleted", async () => {
  const lastSeen = await visit("acme/ann");
  await read(lastSeen, "conv_1");
  await read(lastSeen, "conv_2");
  await lastSeen.forget("conv_1");
  store.refusal = { status: 404, code: "conversation_not_found", message: "gone" };
  await codeOf(lastSeen.readSession("conv_2"));
  await kept();
  store.refusal = away;

  expect(await codeOf(lastSeen.readSession("conv_1"))).toBe("store_unavailable");
  expect(await codeOf(lastSeen.readSession("conv_2"))).toBe("store_unavailable");
});

test("fifty sessions are kept, those opened last", async () => {
  const lastSeen = await visit("acme/ann");
  vi.spyOn(Date, "now").mockImplementation(() => (now += 1));
  let now = 0;
  for (let number = 0; number < 52; number += 1) await read(lastSeen, `conv_${number}`);
  store.refusal = away;

  const codes = await Promise.all(
    [0, 1, 2, 51].map((number) => codeOf(lastSeen.readSession(`conv_${number}`))),
  );

  expect(codes).toEqual(["store_unavailable", "store_unavailable", "none", "none"]);
  vi.restoreAllMocks();
});

test("a session that is too large is read, and not kept", async () => {
  store.items = [storedItem("user", "x".repeat(2_000_001), "msg_1")];
  const lastSeen = await visit("acme/ann");
  await read(lastSeen);
  store.refusal = away;

  expect(await codeOf(lastSeen.readSession("conv_1"))).toBe("store_unavailable");
});

test.each([
  ["has no database", undefined],
  ["never opens its database", { open: () => ({}) }],
  ["refuses its database", { open: () => { throw new Error("denied"); } }],
])("a browser that %s reads as long as the server is there", async (_how, indexedDB) => {
  vi.stubGlobal("indexedDB", indexedDB);
  const lastSeen = await visit("acme/ann");

  expect((await lastSeen.readSession("conv_1")).items).toMatchObject(store.items);
  expect((await lastSeen.readList()).page.data).toEqual([store.session]);
  await lastSeen.forget("conv_1");
  store.refusal = away;
  expect(await codeOf(lastSeen.readSession("conv_1"))).toBe("store_unavailable");
});

describe("a session has changed since it was read", () => {
  test.each([
    ["with a new turn", { updated_at: 7 }],
    ["with an answer in flight", { active_response_ids: ["resp_1"] }],
    ["with a new title", { "chatserve:version": 2 }],
  ])("%s", async (_how, change) => {
    const lastSeen = await visit("acme/ann");
    await lastSeen.readSession("conv_1");
    const before = await lastSeen.hasChanged("conv_1");

    store.session = { ...store.session, ...change };

    expect(before).toBe(false);
    expect(await lastSeen.hasChanged("conv_1")).toBe(true);
  });

  test("when it is gone, not when nobody can tell", async () => {
    const lastSeen = await visit("acme/ann");
    await lastSeen.readSession("conv_1");
    store.refusal = away;
    const isChanged = await lastSeen.hasChanged("conv_1");
    store.refusal = { status: 404, code: "conversation_not_found", message: "gone" };

    expect(isChanged).toBe(false);
    expect(await lastSeen.hasChanged("conv_1")).toBe(true);
  });
});
