/** What was on its way when a page went, on the page that comes next: sent, or to be sent. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { placeOfEdit } from "../src/input/places";
import { Settings } from "../src/settings";
import { FakeLocks, FakeSocket, FakeTab, fakeBrowser, fakeStore, fakeWindow, storedItem, type FakeStore } from "./fakes";

const earlier = [storedItem("user", "Go on", "msg_1"), storedItem("assistant", "Hi!", "msg_2")];
const arrived = { ...storedItem("user", "Go on", "msg_3"), "chatserve:parent_id": "msg_2" };
const branch = { ...storedItem("user", "Otherwise", "msg_3"), "chatserve:parent_id": null };

let store: FakeStore;
let locks: FakeLocks;
let tab: FakeTab;
let app: App;

beforeEach(async () => {
  fakeBrowser();
  store = fakeStore();
  store.items = earlier;
  locks = new FakeLocks();
  tab = new FakeTab();
  await visit("#/c/conv_1");
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const storage = new Map<string, string>();

/** Open the page, or reload it in the middle of whatever it does. */
async function visit(hash: string): Promise<void> {
  locks.release(tab);
  fakeWindow();
  tab.enter(locks, storage);
  location.hash = hash;
  const socket = new FakeSocket();
  app = new App(() => socket as unknown as WebSocket, new Settings());
  app.start();
  socket.accept();
  await vi.advanceTimersByTimeAsync(1_000);
}

async function sendAndReload(hash = "#/c/conv_1"): Promise<void> {
  app.drafts.set(app.current.value.id.value, "Go on");
  void app.sendDraft();
  await vi.advanceTimersByTimeAsync(10);
  await visit(hash);
}

afterEach(() => storage.clear());

test("a message that the server has is not in the composer again", async () => {
  store.items = [...earlier, arrived];

  await sendAndReload();

  expect(app.drafts.of("conv_1")).toBe("");
});

test("the first message of a chat, below its system prompt, is not there again either", async () => {
  await visit("#/");
  store.items = [storedItem("system", "Be brief.", "msg_0"), storedItem("user", "Go on", "msg_1")];

  await sendAndReload();

  expect(app.drafts.of("conv_1")).toBe("");
});

test("a message that did not get there is, though the same has been said before", async () => {
  await sendAndReload();

  expect(app.drafts.of("conv_1")).toBe("Go on");
});

test("a message that gets there only now leaves the composer when that is known", async () => {
  await sendAndReload();
  const before = app.drafts.of("conv_1");
  store.items = [...earlier, arrived];
  await app.current.value.catchUp();

  expect([before, app.drafts.of("conv_1")]).toEqual(["Go on", ""]);
});

test("what is written anew is left alone, whatever has been said", async () => {
  await sendAndReload();
  app.drafts.set("conv_1", "Go");
  app.drafts.set("conv_1", "Go on");
  store.items = [...earlier, arrived];
  await app.current.value.catchUp();

  expect(app.drafts.of("conv_1")).toBe("Go on");
});

test.each([
  ["that the server has is not begun again", [...earlier, branch], ""],
  ["that did not get there is in its editor", earlier, "Otherwise"],
])("a change of a message %s", async (_, items, expected) => {
  const place = placeOfEdit("conv_1", "msg_1");
  app.unsent.put(place, "Otherwise", []);
  app.unsent.onSubmitted(place, app.current.value.places.placeOf("msg_1"));
  app.drafts.keep();
  store.items = items;

  await visit("#/c/conv_1");

  expect(app.drafts.of(place)).toBe(expected);
});
