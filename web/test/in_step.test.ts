import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Settings } from "../src/settings";
import type { AnswerEvent } from "../src/wire/protocol";
import { wholeAnswer } from "./events";
import {
  FakeChannel,
  FakeSocket,
  fakeBrowser,
  fakeStore,
  fakeWindow,
  storedItem,
  type FakeStore,
} from "./fakes";

/** A tab of one browser: its page, and its socket. */
class Tab {
  socket = new FakeSocket();
  readonly app = new App(() => (this.socket = new FakeSocket()) as unknown as WebSocket, new Settings());

  async open(): Promise<this> {
    this.app.start();
    this.socket.accept();
    await settle();
    return this;
  }

  get answers(): string[] {
    return this.app.current.value.entries.value.flatMap((entry) =>
      entry.kind === "answer" ? [entry.answer.value.text] : [],
    );
  }

  lane(): string | undefined {
    const streamIds = this.socket.sent.flatMap((each) => ("stream_id" in each ? [each.stream_id] : []));
    return streamIds.at(-1);
  }

  async receive(events: readonly AnswerEvent[]): Promise<void> {
    for (const event of events) this.socket.receive({ ...event, stream_id: this.lane() });
    await settle();
  }
}

const said = [storedItem("user", "Hello", "msg_1"), answered("Hi!", "msg_2", "resp_0")];

let store: FakeStore;
let reload: ReturnType<typeof vi.fn<() => void>>;

beforeEach(() => {
  fakeBrowser();
  fakeWindow();
  reload = vi.fn<() => void>();
  Object.assign(location, { hash: "#/c/conv_1", reload });
  store = fakeStore();
  store.items = said;
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(600);

function answered(text: string, id: string, responseId: string) {
  return { ...storedItem("assistant", text, id), "chatserve:response_id": responseId };
}

/** The server has taken a turn from somebody. */
function begin(): void {
  store.items = [...said, storedItem("user", "Again", "msg_user")];
  store.session = {
    ...store.session,
    updated_at: 1,
    active_response_ids: ["resp_1"],
  };
}

function finish(): void {
  store.items = [...store.items, answered("Hold the button.", "msg_answer", "resp_1")];
  store.session = {
    ...store.session,
    updated_at: 2,
    active_response_ids: [],
  };
}

test("a turn in one tab is shown in the other, and its answer followed", async () => {
  const first = await new Tab().open();
  const second = await new Tab().open();

  void first.app.send("Again");
  await settle();
  begin();
  await first.receive(wholeAnswer.slice(0, 6));
  await second.receive(wholeAnswer.slice(0, 7));
  const begun = second.answers;
  finish();
  await first.receive(wholeAnswer.slice(6));
  await second.receive(wholeAnswer.slice(7));

  expect(begun).toEqual(["Hi!", "Hold the"]);
  expect(second.answers).toEqual(["Hi!", "Hold the button."]);
  expect(first.answers).toEqual(second.answers);
  expect(second.socket.sent).toContainEqual(
    expect.objectContaining({ type: "chatserve:response.resume", response_id: "resp_1" }),
  );
});

test("what is shown stays the same entries when a new turn comes", async () => {
  const first = await new Tab().open();
  void first.app.send("Again");
  await settle();
  begin();
  await first.receive(wholeAnswer.slice(0, 6));
  finish();
  await first.receive(wholeAnswer.slice(6));
  const shown = first.app.current.value.entries.value;

  await vi.advanceTimersByTimeAsync(3_000);

  expect(store.calls.filter((call) => call.endsWith("/items"))).toHaveLength(2);
  expect(first.app.current.value.entries.value).toEqual(shown);
  expect(first.app.current.value.entries.value[3]).toBe(shown[3]);
  expect(first.app.current.value.entries.value[2]).toBe(shown[2]);
});

describe("a turn from another device", () => {
  test("is found within fifteen seconds while the page is in view", async () => {
    const tab = await new Tab().open();
    Object.assign(document, { hidden: false });
    vi.stubGlobal("requestAnimationFrame", (frame: () => void) => setTimeout(frame, 16));
    begin();
    finish();

    await vi.advanceTimersByTimeAsync(15_000);

    expect(tab.answers).toEqual(["Hi!", "Hold the button."]);
  });

  test("costs one small request where there is none, and nothing while nobody looks", async () => {
    await new Tab().open();
    store.calls.length = 0;
    await vi.advanceTimersByTimeAsync(15_000);
    const hidden = store.calls.filter((call) => call.includes("/v1/conversations/"));
    Object.assign(document, { hidden: false });
    await vi.advanceTimersByTimeAsync(15_000);

    expect(hidden).toEqual([]);
    expect(store.calls.filter((call) => call.includes("/v1/conversations/"))).toEqual([
      "GET /v1/conversations/conv_1",
    ]);
  });

  test("does not disturb an answer that runs here", async () => {
    const tab = await new Tab().open();
    void tab.app.send("Again");
    await settle();
    store.calls.length = 0;
    Object.assign(document, { hidden: false });

    await vi.advanceTimersByTimeAsync(15_000);

    expect(store.calls).not.toContain("GET /v1/conversations/conv_1");
  });
});

test.each([false, true])("a list is read when another tab has news, unless it is hidden (%s)", async (hidden) => {
  await new Tab().open();
  Object.assign(document, { hidden });
  store.calls = [];

  FakeChannel.open.at(-1)?.onmessage?.({ data: { kind: "changed", sessionId: "conv_2" } });
  await settle();

  expect(store.calls.includes("GET /v1/chatserve/conversations")).toBe(!hidden);
});

test("a session deleted in one tab makes room for a new chat in the other", async () => {
  const first = await new Tab().open();
  const second = await new Tab().open();
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => {
    const reply = await fetch(url, init);
    if (init.method === "DELETE") {
      store.refusal = { status: 404, code: "conversation_not_found", message: "gone" };
    }
    return reply;
  });

  first.app.deleteSession("conv_1", "Hello");
  first.app.undo.finish();
  await settle();

  expect(second.app.current.value.id.value).toBeNull();
  expect(second.app.hasMissed.value).toBe(true);
});

test("a browser whose tabs cannot hear each other has the page all the same", async () => {
  vi.stubGlobal("BroadcastChannel", undefined);

  const tab = await new Tab().open();
  await tab.app.renameSession("conv_1", "Otherwise");

  expect(tab.answers).toEqual(["Hi!"]);
});

test("who logs out in one tab is out in all, and leaves no draft", async () => {
  const first = await new Tab().open();
  await new Tab().open();
  first.app.drafts.set("conv_1", "Private");

  await first.app.login.logOut();
  await settle();

  expect(first.app.drafts.of("conv_1")).toBe("");
  expect(reload).toHaveBeenCalledTimes(2);
});

test("a refused message that is shown is not taken away", async () => {
  const tab = await new Tab().open();
  void tab.app.send("Much too long");
  await settle();
  const error = { code: "context_length_exceeded", message: "full" };
  await tab.receive([{ type: "error", error }]);
  begin();
  finish();

  await vi.advanceTimersByTimeAsync(3_000);

  expect(tab.app.current.value.entries.value).toHaveLength(4);
});
