/** What becomes of a message that is being written or sent, in the whole page without its views. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { placeOfEdit, placeOfHeld } from "../src/input/places";
import { Settings } from "../src/settings";
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
let address: ReturnType<typeof fakeWindow>;
let app: App;

beforeEach(() => {
  fakeBrowser();
  address = fakeWindow();
  store = fakeStore();
  socket = new FakeSocket();
  app = new App(() => socket as unknown as WebSocket, new Settings());
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

describe("a refused message", () => {
  const refusal = { code: "context_length_exceeded", message: "too long" };

  async function sendAndRefuse(text: string): Promise<void> {
    app.drafts.set(app.current.value.id.value, text);
    void app.sendDraft();
    await settle();
    const streamId = socket.sent.flatMap((each) =>
      each.type === "response.create" ? [each.stream_id] : [],
    );
    socket.receive({ type: "error", stream_id: streamId.at(-1), error: refusal });
    await settle();
  }

  test("of a new chat comes back, and the session made for it goes", async () => {
    await start();

    await sendAndRefuse("Much too long");

    expect(app.current.value.id.value).toBeNull();
    expect(app.drafts.of(null)).toBe("Much too long");
    expect(location.hash).toBe("#/");
    expect(store.calls).toContain("DELETE /v1/conversations/conv_1");
    expect(app.list.sessions.value).toEqual([]);
  });

  test("of a session with messages comes back there, and the session stays", async () => {
    store.items = [storedItem("user", "Hello", "msg_1")];
    location.hash = "#/c/conv_1";
    await start();

    await sendAndRefuse("Much too long");

    expect(app.drafts.of("conv_1")).toBe("Much too long");
    expect(store.calls).not.toContain("DELETE /v1/conversations/conv_1");
  });

  test("does not replace what was typed since", async () => {
    store.items = [storedItem("user", "Hello", "msg_1")];
    location.hash = "#/c/conv_1";
    await start();
    void app.send("Much too long");
    app.drafts.set("conv_1", "Something new");
    await settle();

    socket.receive({ type: "error", stream_id: "answer-1", error: refusal });
    await settle();

    expect(app.drafts.of("conv_1")).toBe("Something new");
    expect(app.drafts.of(placeOfHeld("conv_1"))).toBe("Much too long");
  });

  test("in the place of another one is in its editor, not in the composer", async () => {
    store.items = [storedItem("user", "Hello", "msg_1"), storedItem("assistant", "Hi!", "msg_2")];
    location.hash = "#/c/conv_1";
    await start();
    app.unsent.put(placeOfEdit("conv_1", "msg_1"), "Much too long", []);

    void app.rewrite("msg_1", "Much too long");
    await settle();
    socket.receive({ type: "error", stream_id: "answer-1", error: refusal });
    await settle();

    expect(app.drafts.of("conv_1")).toBe("");
    expect(app.drafts.of(placeOfEdit("conv_1", "msg_1"))).toBe("Much too long");
  });

  test("that is an answer said otherwise is told of, and kept", async () => {
    store.items = [storedItem("user", "Hello", "msg_1"), storedItem("assistant", "Hi!", "msg_2")];
    location.hash = "#/c/conv_1";
    await start();
    const place = placeOfEdit("conv_1", "msg_2");
    app.unsent.put(place, "Good day!", []);
    store.refusal = { status: 503, code: "store_unavailable", message: "The store is away." };

    await app.rewrite("msg_2", "Good day!");
    const refused = [app.unsent.problem.value, app.drafts.of(place)];
    store.refusal = null;
    store.items = [storedItem("assistant", "Good day!", "msg_3")];
    await app.rewrite("msg_2", "Good day!");

    expect(refused).toEqual(["The store is away.", "Good day!"]);
    expect(app.drafts.of(place)).toBe("");
  });

  test("that is retried leaves the composer", async () => {
    await start();
    await sendAndRefuse("Hello");

    void app.retry();
    await settle();

    expect(app.drafts.of("conv_1")).toBe("");
    expect(app.current.value.entries.value).toHaveLength(2);
  });

  test("stays with its session when the reader looks elsewhere", async () => {
    await start();
    void app.send("Much too long");
    await settle();
    app.newChat();

    socket.receive({ type: "error", stream_id: "answer-1", error: refusal });
    await settle();

    expect(app.drafts.of("conv_1")).toBe("Much too long");
    expect(app.drafts.of(null)).toBe("");
  });
});

describe("unsent text", () => {
  test("waits in its own conversation", async () => {
    await start();
    app.drafts.set(null, "For a new chat");

    address.goTo("#/c/conv_1");
    const elsewhere = app.drafts.of(app.current.value.id.value);
    app.drafts.set("conv_1", "For the old one");
    app.newChat();

    expect(elsewhere).toBe("");
    expect(app.drafts.of(null)).toBe("For a new chat");
    expect(app.drafts.of("conv_1")).toBe("For the old one");
  });

  test("is gone from the composer once it is sent", async () => {
    await start();
    app.drafts.set(null, "Hello");

    await app.sendDraft();

    expect(app.drafts.of(null)).toBe("");
    expect(app.current.value.lastMessage()).toBe("Hello");
  });

  test("typed while a new chat is being stored goes with it", async () => {
    await start();
    const sending = app.send("Hello");
    app.drafts.set(null, "And");

    await sending;

    expect(app.drafts.of("conv_1")).toBe("And");
    expect(app.drafts.of(null)).toBe("");
  });

  test("is kept while no model can be asked", async () => {
    store.models = [];
    await start();
    app.drafts.set(null, "Hello");

    await app.sendDraft();

    expect(app.drafts.of(null)).toBe("Hello");
  });
});
