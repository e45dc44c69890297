import { effect } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
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
import { fields, persona } from "./descriptions";

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

describe("a new chat", () => {
  test("has nothing but the model of the one before", async () => {
    store.models = [{ id: "tiny" }, { id: "large" }];
    await start();
    const { parameters, systemPrompt } = app.current.value;
    systemPrompt.value = "Be brief.";
    parameters.chooseModel("large");
    parameters.setField("temperature", 0);
    await app.send("Hello");

    app.newChat();

    expect(app.current.value.id.value).toBeNull();
    expect(app.current.value.entries.value).toEqual([]);
    expect(app.current.value.systemPrompt.value).toBe("");
    expect(app.current.value.parameters.choices.value).toEqual({
      model: "large",
      persona: null,
      fields: {},
    });
  });

  test("is as the reader left it when they looked elsewhere, until it is sent", async () => {
    await start();
    app.current.value.systemPrompt.value = "Be brief.";
    app.current.value.parameters.setField("temperature", 0);
    address.goTo("#/c/conv_1");

    app.newChat();
    const { systemPrompt, parameters } = app.current.value;
    const left = [systemPrompt.value, parameters.choices.value.fields];
    await app.send("Hello");
    app.newChat();

    expect(left).toEqual(["Be brief.", { temperature: 0 }]);
    expect(app.current.value.systemPrompt.value).toBe("");
  });

  test("is as the reader left it after a reload", async () => {
    const locks = new FakeLocks();
    const tab = new FakeTab();
    tab.enter(locks, new Map());
    await start();
    app.current.value.systemPrompt.value = "Be brief.";
    app.current.value.parameters.setField("temperature", 0);
    await vi.advanceTimersByTimeAsync(500);
    locks.release(tab);

    app = new App(() => socket as unknown as WebSocket, new Settings());
    await start();

    expect(app.current.value.systemPrompt.value).toBe("Be brief.");
    expect(app.current.value.parameters.choices.value.fields).toEqual({ temperature: 0 });
    expect(app.next.numChanged.value).toBe(0);
    app.offer.models.value = [{ id: "tiny", "chatserve:sampling": Object.values(fields) }];
    expect(app.next.numChanged.value).toBe(1);
  });
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

describe("deleting the session on the screen", () => {
  const deletion = "DELETE /v1/conversations/conv_1";

  beforeEach(async () => {
    await start();
    await app.send("Hello");
    app.deleteSession("conv_1", "Hello");
  });

  test("leaves a new chat, and the server keeps the session for a moment", () => {
    expect(app.current.value.id.value).toBeNull();
    expect(location.hash).toBe("#/");
    expect(app.list.sessions.value).toEqual([]);
    expect(store.calls).not.toContain(deletion);
  });

  test("is final after that moment", async () => {
    await vi.advanceTimersByTimeAsync(8_000);

    expect(store.calls).toContain(deletion);
    expect(app.undo.offer.value).toBeNull();
  });

  test("is final at once when the page is left", async () => {
    app.undo.finish();
    await settle();

    expect(store.calls).toContain(deletion);
  });

  test("shows that it is deleted where the reader goes back to it, with its draft kept", async () => {
    app.drafts.set("conv_1", "More");
    address.goTo("#/c/conv_1");
    const { isDeleted } = app;
    const before = [isDeleted.value, app.undo.offer.value?.target?.sessionId];

    app.undo.undo();

    expect(before).toEqual([true, "conv_1"]);
    expect(isDeleted.value).toBe(false);
    expect(app.drafts.of("conv_1")).toBe("More");
  });

  test("leaves nothing to see, or of its draft, once it is final", async () => {
    app.drafts.set("conv_1", "More");
    address.goTo("#/c/conv_1");
    await vi.advanceTimersByTimeAsync(8_500);

    expect(app.isDeleted.value).toBe(false);
    expect(app.current.value.id.value).toBeNull();
    expect(location.hash).toBe("#/");
    expect(app.drafts.of("conv_1")).toBe("");
  });

  test("is final when the page is left, though its request gets lost", async () => {
    new FakeTab().enter(new FakeLocks(), new Map());
    store.refusal = { status: 503, code: "store_unavailable", message: "The store is away." };
    address.leave();
    await settle();
    store.refusal = null;
    store.calls = [];

    app = new App(() => socket as unknown as WebSocket, new Settings());
    await start();

    expect(store.calls).toContain(deletion);
  });

  test("is not seen in the page that follows, which is still to finish it", async () => {
    store.refusal = { status: 503, code: "store_unavailable", message: "The store is away." };
    new FakeTab().enter(new FakeLocks(), new Map());
    address.leave();
    await settle();
    store.refusal = null;

    app = new App(() => socket as unknown as WebSocket, new Settings());
    const shown = vi.fn();
    effect(() => shown(app.list.sessions.value.length));
    await start();

    expect(app.list.isLoaded.value).toBe(true);
    expect(shown).not.toHaveBeenCalledWith(1);
  });

  test("can be taken back", async () => {
    app.undo.undo();
    await vi.advanceTimersByTimeAsync(10_000);

    expect(store.calls).not.toContain(deletion);
    expect(app.list.sessions.value.map(({ id }) => id)).toEqual(["conv_1"]);
  });

  test("that the server refuses brings it back and says why", async () => {
    store.refusal = { status: 503, code: "store_unavailable", message: "The store is away." };

    app.undo.finish();
    await settle();

    expect(app.list.sessions.value.map(({ id }) => id)).toEqual(["conv_1"]);
    expect(app.undo.problem.value).toBe("The store is away.");
  });
});

test("models are asked for again until one is ready", async () => {
  store.models = [];
  await start();
  const before = app.offer.problem.value;
  store.models = [{ id: "tiny" }];

  await vi.advanceTimersByTimeAsync(3_000);

  expect(before).toContain("still loading");
  expect(app.offer.problem.value).toBeNull();
  expect(app.next.model.value?.id).toBe("tiny");
});

test("a gateway that refuses the page says why", async () => {
  store.refusal = { status: 403, code: "host_not_allowed", message: "This host is not served." };

  await start();

  expect(app.offer.problem.value).toBe("This host is not served.");
});

describe("what is chosen for a conversation", () => {
  const sampling = Object.values(fields);

  function sent(): Record<string, unknown>[] {
    return socket.sent.filter(({ type }) => type === "response.create").map((each) => ({ ...each }));
  }

  beforeEach(() => {
    store.models = [
      { id: "tiny", "chatserve:sampling": sampling },
      { id: "tiny:support", "chatserve:persona": "support", "chatserve:sampling": sampling },
      { id: "large", "chatserve:sampling": sampling },
    ];
    store.prompts = [persona("letter", { variables: [{ name: "name", default: null }] })];
  });

  test("is what the next answer is asked for with, and nothing else", async () => {
    await start();
    app.current.value.parameters.setField("temperature", 0);
    app.current.value.parameters.setField("max_output_tokens", 5);

    await app.send("Hello");

    expect(sent()[0]).toMatchObject({ model: "tiny", temperature: 0, max_output_tokens: 5 });
    expect(sent()[0]).not.toHaveProperty("top_p");
    expect(sent()[0]).not.toHaveProperty("prompt");
  });

  test("is not replaced by another model when the chosen one goes, and holds when it is back", async () => {
    await start();
    app.current.value.parameters.chooseModel("large");
    const [tiny, alias, large] = store.models;
    store.models = [tiny!, alias!];
    app.offer.refresh();
    await settle();

    app.drafts.set(null, "Hello");
    await app.sendDraft();

    expect(app.next.model.value).toBeNull();
    expect(app.next.problem.value).toContain("large");
    expect(app.drafts.of(null)).toBe("Hello");
    expect(sent()).toEqual([]);

    store.models = [tiny!, large!];
    app.offer.refresh();
    await settle();

    expect(app.next.problem.value).toBeNull();
    expect(app.next.model.value?.id).toBe("large");
  });

  test("is a persona by its name and values, once those that it needs are given", async () => {
    await start();
    app.choosePersona("letter");
    await app.send("Hello");
    expect(sent()).toEqual([]);

    app.current.value.parameters.setVariable("name", "Ada");
    await app.send("Hello");

    expect(sent()[0]).toMatchObject({ prompt: { id: "letter", variables: { name: "Ada" } } });
  });

  test("is asked for where it is given: on the page of a new chat, later in the inspector", async () => {
    await start();
    app.choosePersona("letter");
    const isAsked = app.asksForVariables.value;
    const isInspectorShown = app.layout.isInspectorShown.value;
    store.items = [storedItem("user", "Hello", "msg_1")];
    address.goTo("#/c/conv_1");
    await settle();

    app.choosePersona("letter");

    expect([isAsked, isInspectorShown]).toEqual([true, false]);
    expect(app.layout.isInspectorShown.value).toBe(true);
  });

  test("asks for nothing where a persona needs nothing", async () => {
    await start();

    app.choosePersona(null);

    expect(app.asksForVariables.value).toBe(false);
  });
});

test("an alias of a model with a persona is no model of its own", async () => {
  store.models = [{ id: "tiny" }, { id: "tiny:support", "chatserve:persona": "support" }];
  await start();
  expect(app.offer.models.value.map(({ id }) => id)).toEqual(["tiny"]);
});

test("without a key, nothing more is asked for than whose the page is", async () => {
  store.refusal = { status: 401, code: "invalid_api_key", message: "A key is needed." };

  app.start();
  await settle();

  expect(store.calls).toEqual(["GET /v1/chatserve/me"]);
  expect(app.login.isNeeded.value).toBe(true);
});
