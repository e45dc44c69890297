import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { placeOfEdit, placeOfHeld } from "../src/input/places";
import { Settings } from "../src/settings";
import {
  FakeLocks,
  FakeSocket,
  FakeTab,
  fakeBrowser,
  fakeStore,
  fakeWindow,
  storedItem,
  type FakeStore,
} from "./fakes";

const gone = { status: 404, code: "conversation_not_found", message: "gone" };

let store: FakeStore;
let socket: FakeSocket;
let address: ReturnType<typeof fakeWindow>;
let app: App;

beforeEach(() => {
  fakeBrowser();
  address = fakeWindow();
  store = fakeStore();
  store.items = [storedItem("user", "Hello", "msg_1"), storedItem("assistant", "Hi!", "msg_2")];
  socket = new FakeSocket();
  app = new App(() => socket as unknown as WebSocket, new Settings());
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("the address of a conversation that is not the reader's leads to a new chat", async () => {
  location.hash = "#/c/conv_9";
  app.drafts.set("conv_9", "Hello");
  store.refusal = gone;
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

describe("a conversation that is deleted elsewhere", () => {
  beforeEach(async () => {
    location.hash = "#/c/conv_1";
    app.start();
    socket.accept();
    await settle();
  });

  const settle = () => vi.advanceTimersByTimeAsync(300);

  /** The page finds out, as it does now and then while it is in view. */
  async function noticeIt(): Promise<void> {
    store.refusal = gone;
    Object.assign(document, { hidden: false });
    await vi.advanceTimersByTimeAsync(15_300);
  }

  /** Nothing is written where no view shows it. */
  function expectNewChat(): void {
    expect(app.current.value.id.value).toBeNull();
    expect([app.hasMissed.value, location.hash]).toEqual([true, "#/"]);
    expect(app.unsent.sessionIds()).toEqual(new Set());
  }

  async function refuse(): Promise<void> {
    store.refusal = gone;
    socket.receive({ type: "error", stream_id: "answer-1", error: gone });
    await settle();
  }

  test("leaves what is being written, with what is attached, in a new chat", async () => {
    app.drafts.set("conv_1", "Precious");
    app.unsent.attachText("conv_1", "long");

    await noticeIt();

    expectNewChat();
    expect(app.drafts.of(null)).toBe("Precious");
    expect(app.unsent.attachmentsOf(null).map(({ text }) => text)).toEqual(["long"]);
  });

  test("does not mix that with what the new chat has", async () => {
    app.drafts.set(null, "Own");
    app.drafts.set("conv_1", "Precious");

    await noticeIt();

    expectNewChat();
    expect([app.drafts.of(null), app.drafts.of(placeOfHeld(null))]).toEqual(["Own", "Precious"]);
  });

  test("leaves a change of an earlier message, too", async () => {
    app.unsent.put(placeOfEdit("conv_1", "msg_1"), "Hello otherwise", []);

    await noticeIt();

    expectNewChat();
    expect(app.drafts.of(null)).toBe("Hello otherwise");
  });

  test("leaves a draft and a change one beside the other", async () => {
    app.unsent.put(placeOfEdit("conv_1", "msg_1"), "Hello otherwise", []);
    app.drafts.set("conv_1", "Precious");

    await noticeIt();

    expectNewChat();
    expect(app.drafts.of(null)).toBe("Precious");
    expect(app.drafts.of(placeOfHeld(null))).toBe("Hello otherwise");
  });

  test("is found out by the message that it refuses, which is in the new chat", async () => {
    app.drafts.set("conv_1", "Precious");
    void app.sendDraft();
    await settle();

    await refuse();

    expectNewChat();
    expect(app.drafts.of(null)).toBe("Precious");
  });

  test("is found out by the change that it refuses", async () => {
    app.unsent.put(placeOfEdit("conv_1", "msg_1"), "Hello otherwise", []);
    void app.rewrite("msg_1", "Hello otherwise");
    await settle();

    await refuse();

    expectNewChat();
    expect(app.drafts.of(null)).toBe("Hello otherwise");
  });

  test("loses no message, though its writer has gone elsewhere by then", async () => {
    app.drafts.set("conv_1", "Precious");
    void app.sendDraft();
    await settle();
    app.newChat();
    app.drafts.set(null, "Own");

    await refuse();

    expect(app.unsent.sessionIds()).toEqual(new Set());
    expect([app.drafts.of(null), app.drafts.of(placeOfHeld(null))]).toEqual(["Own", "Precious"]);
  });

  test("is not taken for gone where something else is not found", async () => {
    app.drafts.set("conv_1", "Precious");
    store.refusal = { status: 404, code: "http_404", message: "no such page" };
    Object.assign(document, { hidden: false });

    await vi.advanceTimersByTimeAsync(15_300);

    expect(app.current.value.id.value).toBe("conv_1");
    expect(app.drafts.of("conv_1")).toBe("Precious");
  });
});

describe("a draft of a conversation that was deleted while no page was open", () => {
  const storage = new Map<string, string>();

  async function visit(hash: string): Promise<void> {
    new FakeTab().enter(new FakeLocks(), storage);
    address.goTo(hash);
    app = new App(() => new FakeSocket() as unknown as WebSocket, new Settings());
    app.start();
    await vi.advanceTimersByTimeAsync(1_000);
  }

  beforeEach(async () => {
    await visit("#/");
    app.drafts.set("conv_1", "Precious");
    app.drafts.keep();
    store.refusal = gone;
  });

  test.each(["#/", "#/c/conv_1"])("is in the new chat of a page opened at %s", async (hash) => {
    await visit(hash);

    expect([app.drafts.of("conv_1"), app.drafts.of(null)]).toEqual(["", "Precious"]);
  });
});
