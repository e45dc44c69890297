import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { App } from "../src/app";
import {
  FakeSocket,
  fakeBrowser,
  fakeStore,
  fakeWindow,
  storedItem,
  type FakeStore,
} from "./fakes";

let store: FakeStore;
let socket: FakeSocket;
let address: { goTo(hash: string): void };
let app: App;

beforeEach(() => {
  fakeBrowser();
  address = fakeWindow();
  store = fakeStore();
  socket = new FakeSocket();
  app = new App(() => socket as unknown as WebSocket);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function start(): Promise<void> {
  app.start();
  socket.accept();
  await settle();
}

async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(300);
}

test("the first message gives a new chat its address and its place in the list", async () => {
  await start();

  await app.send("How do I reset it?");

  expect(location.hash).toBe("#/c/conv_1");
  expect(app.list.sessions.value.map(({ id }) => id)).toEqual(["conv_1"]);
});

test("an address opens its session", async () => {
  store.items = [storedItem("user", "Hello", "msg_1")];
  location.hash = "#/c/conv_1";

  await start();

  expect(app.current.value.id.value).toBe("conv_1");
  expect(app.current.value.entries.value).toHaveLength(1);
});

test("a new chat begins with the system prompt of the one before", async () => {
  await start();
  app.current.value.systemPrompt.value = "Be brief.";
  await app.send("Hello");

  app.newChat();

  expect(app.current.value.id.value).toBeNull();
  expect(app.current.value.entries.value).toEqual([]);
  expect(app.current.value.systemPrompt.value).toBe("Be brief.");
});

test("a session whose answer runs is the same one when the reader comes back", async () => {
  await start();
  await app.send("Hello");
  const session = app.current.value;

  address.goTo("#/");
  const elsewhere = app.current.value;
  address.goTo("#/c/conv_1");

  expect(elsewhere).not.toBe(session);
  expect(app.current.value).toBe(session);
});

test("a new chat is empty although another one is just being stored", async () => {
  await start();
  void app.send("Hello");
  app.newChat();
  void app.send("Again");

  app.newChat();

  expect(app.current.value.entries.value).toEqual([]);
});

test("deleting the session on the screen leaves a new chat", async () => {
  await start();
  await app.send("Hello");

  await app.deleteSession("conv_1");

  expect(store.calls).toContain("DELETE /v1/conversations/conv_1");
  expect(app.current.value.id.value).toBeNull();
  expect(location.hash).toBe("#/");
});

test("a session that cannot be deleted stays", async () => {
  await start();
  await app.send("Hello");
  store.refusal = { status: 503, code: "store_unavailable", message: "The store is away." };

  await app.deleteSession("conv_1");

  expect(app.current.value.id.value).toBe("conv_1");
  expect(app.list.problem.value).toBe("The store is away.");
});

test("models are asked for again until one is ready", async () => {
  store.models = [];
  await start();
  const before = app.serviceProblem.value;
  store.models = [{ id: "tiny" }];

  await vi.advanceTimersByTimeAsync(3_000);

  expect(before).toBe("No model is ready yet.");
  expect(app.serviceProblem.value).toBeNull();
  expect(app.model.value?.id).toBe("tiny");
});

test("a gateway that refuses the page says why", async () => {
  store.refusal = { status: 403, code: "host_not_allowed", message: "This host is not served." };

  await start();

  expect(app.serviceProblem.value).toBe("This host is not served.");
});
