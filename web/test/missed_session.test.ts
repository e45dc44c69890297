import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Settings } from "../src/settings";
import { FakeSocket, fakeBrowser, fakeStore, fakeWindow, type FakeStore } from "./fakes";

let store: FakeStore;
let app: App;

beforeEach(() => {
  fakeBrowser();
  fakeWindow();
  store = fakeStore();
  app = new App(() => new FakeSocket() as unknown as WebSocket, new Settings());
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("the address of a conversation that is not the reader's leads to a new chat", async () => {
  location.hash = "#/c/conv_9";
  app.drafts.set("conv_9", "Hello");
  store.refusal = { status: 404, code: "conversation_not_found", message: "gone" };
  app.start();
  await vi.advanceTimersByTimeAsync(300);

  expect(app.current.value.id.value).toBeNull();
  expect(app.current.value.load.value.kind).toBe("ready");
  expect(app.hasMissed.value).toBe(true);
  expect(location.hash).toBe("#/");
  expect(app.drafts.of(null)).toBe("Hello");

  app.newChat();

  expect(app.hasMissed.value).toBe(false);
});
