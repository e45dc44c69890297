/** What replies is not the service: a proxy, or the login page of a network. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Settings } from "../src/settings";
import { FakeSocket, fakeBrowser, fakeStore, fakeWindow, storedItem, type FakeStore } from "./fakes";

let store: FakeStore;
let app: App;
let socket: FakeSocket;
/** What replies in the place of the service, or null. */
let stranger: (() => Response) | null;

beforeEach(() => {
  fakeBrowser();
  fakeWindow();
  store = fakeStore();
  store.items = [storedItem("user", "Hello", "msg_1")];
  stranger = null;
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => stranger?.() ?? fetch(url, init));
  socket = new FakeSocket();
  app = new App(() => socket as unknown as WebSocket, new Settings());
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(300);

async function start(): Promise<void> {
  app.start();
  socket.accept();
  await settle();
}

const words =
  "The server's answer could not be understood. " +
  "Something in between may have answered, such as a network's login page.";

const strangers: [string, () => Response][] = [
  ["null", () => Response.json(null)],
  ["an object with nothing in it", () => Response.json({})],
  ["an object whose fields are of other kinds", () => Response.json({ id: 1, data: {} })],
  ["a list", () => Response.json([])],
  ["a page", () => new Response("<!doctype html><title>Welcome</title>")],
  ["nothing", () => new Response(null, { status: 204 })],
];

describe.each(strangers)("a reply that is %s", (_, reply) => {
  test("opens no conversation, which can be tried again", async () => {
    await start();
    stranger = reply;
    location.hash = "#/c/conv_1";
    const session = app.current.value;
    await session.open("conv_1");
    const failed = session.load.value;

    stranger = null;
    await session.open("conv_1");

    expect(failed).toEqual({ kind: "failed", message: words });
    expect(session.load.value.kind).toBe("ready");
    expect(session.entries.value).toHaveLength(1);
  });

  test("begins no conversation, and what was to be sent can be sent again", async () => {
    await start();
    app.drafts.set(null, "How do I reset it?");
    stranger = reply;
    await app.sendDraft();
    await settle();
    const refused = [location.hash, app.drafts.of(null), socket.sent.length];
    const answer = app.current.value.entries.value.at(-1);

    stranger = null;
    await app.retry();
    await settle();

    expect(refused).toEqual(["", "How do I reset it?", 0]);
    expect(answer?.kind === "answer" && answer.answer.value.error?.message).toBe(words);
    expect(location.hash).toBe("#/c/conv_1");
    expect(socket.sent).toContainEqual(expect.objectContaining({ input: "How do I reset it?" }));
  });

  test("leaves the list as it was, and says so", async () => {
    await start();
    stranger = reply;
    await app.list.refresh();
    await app.list.rename("conv_1", "Otherwise");

    expect(app.list.sessions.value).toEqual([store.session]);
    expect(app.list.problem.value).toBe(words);
  });
});

test("a page in the place of a reply has deleted nothing", async () => {
  await start();
  stranger = () => new Response("<!doctype html><title>Welcome</title>");

  await expect(app.list.remove("conv_1")).rejects.toThrow(words);

  expect(app.list.sessions.value).toEqual([store.session]);
});
