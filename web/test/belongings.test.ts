import "fake-indexeddb/auto";

import { IDBFactory } from "fake-indexeddb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Settings } from "../src/settings";
import { FakeSocket, fakeBrowser, fakeStore, fakeWindow, storedItem, type FakeStore } from "./fakes";

const ann = { tenant: "acme", user: "ann", role: "member", key_id: "key_1" };
const bob = { tenant: "acme", user: "bob", role: "member", key_id: "key_2" };
/** In everything that ann has said, written or chosen. */
const secret = "xylophone";

/** Storage whose names are its properties, as a browser's are. */
class FakeStorage {
  [name: string]: unknown;

  constructor() {
    const define = (name: string, value: unknown) => Object.defineProperty(this, name, { value });
    define("getItem", (name: string) => this[name] ?? null);
    define("setItem", (name: string, text: string) => (this[name] = text));
    define("removeItem", (name: string) => delete this[name]);
  }
}

interface Page {
  app: App;
  socket: FakeSocket;
  /** What the browser calls as the page is left. */
  hide: () => void;
}

let store: FakeStore;
/** Who the server takes the reader for; null: it wants a key. */
let user: typeof ann | null;
let reload: ReturnType<typeof vi.fn<() => void>>;

beforeEach(() => {
  fakeBrowser();
  fakeWindow();
  reload = vi.fn<() => void>();
  Object.assign(location, { hash: "#/c/conv_1", reload });
  vi.stubGlobal("localStorage", new FakeStorage());
  vi.stubGlobal("sessionStorage", new FakeStorage());
  vi.stubGlobal("indexedDB", new IDBFactory());
  store = fakeStore();
  store.session.title = `The ${secret}`;
  store.items = [storedItem("user", `A ${secret}?`, "msg_1"), storedItem("assistant", secret, "msg_2")];
  user = ann;
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => {
    if (url.pathname.endsWith("/logout")) user = null;
    if (user === null) {
      const error = { code: "invalid_api_key", message: "this needs a key" };
      return Response.json({ error }, { status: 401 });
    }
    return url.pathname.endsWith("/me") ? Response.json(user) : fetch(url, init);
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(1_000);

async function visit(): Promise<Page> {
  let hide = () => {};
  Object.assign(window, {
    addEventListener: (type: string, listener: () => void) => {
      if (type === "pagehide") hide = listener;
    },
  });
  const socket = new FakeSocket();
  const app = new App(() => socket as unknown as WebSocket, new Settings());
  app.start();
  socket.accept();
  await settle();
  return { app, socket, hide };
}

/** A page on which ann reads, writes a draft, and has chosen what is not noted yet. */
async function visitAnn(): Promise<Page> {
  const page = await visit();
  page.app.drafts.set("conv_1", `About the ${secret}`);
  page.app.unsent.attachText("conv_1", `All of the ${secret}`);
  await settle();
  page.app.current.value.parameters.setField("stop", [secret]);
  return page;
}

/** Everything that scripts of a later page can read in this browser. */
async function kept(): Promise<string> {
  return JSON.stringify([localStorage, sessionStorage, ...(await keptTables()).values()]);
}

async function keptTables(): Promise<Map<string, unknown[]>> {
  const database = await asked(indexedDB.open("chatserve"));
  const tables = [...database.objectStoreNames].map(async (name) => {
    const rows = await asked(database.transaction(name).objectStore(name).getAll());
    return [name, rows] as const;
  });
  return new Map(await Promise.all(tables));
}

async function asked<T>(request: IDBRequest<T>): Promise<T> {
  const reply = new Promise<T>((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  await settle();
  return reply;
}

test("what is looked for is there before", async () => {
  const { hide } = await visitAnn();
  hide();

  const words = await kept();
  expect(words.split(secret).length).toBeGreaterThan(4);
  expect(JSON.stringify((await keptTables()).get("attachments"))).toContain(secret);
  expect(Object.keys(sessionStorage)).toContain("chatserve:left-choices");
});

describe("nothing is left of who", () => {
  test("logs out", async () => {
    const { app, hide } = await visitAnn();

    await Promise.all([app.logOut(), settle()]);
    hide();

    expect(reload).toHaveBeenCalled();
    expect(location.hash).toBe("#/");
    expect(await kept()).not.toContain(secret);
  });

  test("has logged out in another tab", async () => {
    const other = await visitAnn();
    const { app, hide } = await visitAnn();

    await Promise.all([app.logOut(), settle()]);
    for (const leave of [hide, other.hide]) leave();
    await visit();

    expect(await kept()).not.toContain(secret);
  });

  test("left the page, and logged out in another tab", async () => {
    const left = await visitAnn();
    left.hide();
    const { app } = await visit();
    await Promise.all([app.logOut(), settle()]);

    await visit();

    expect(await kept()).not.toContain(secret);
  });
});

describe.each([4401, 1008])("a login that the server ends with code %i", (code) => {
  async function end({ socket }: Page): Promise<void> {
    user = null;
    socket.drop(code, "this access has ended");
    await settle();
  }

  test("leaves the drafts and nothing else, also when the page is left", async () => {
    const page = await visitAnn();

    await end(page);
    page.hide();

    const { [`chatserve:drafts`]: drafts, ...others } = localStorage as unknown as FakeStorage;
    expect(page.app.login.isNeeded.value).toBe(true);
    expect(drafts).toContain(secret);
    vi.stubGlobal("localStorage", others);
    const { attachments, ...tables } = Object.fromEntries(await keptTables());
    expect(attachments).toHaveLength(1);
    expect(JSON.stringify([others, sessionStorage, tables])).not.toContain(secret);
  });

  test("leaves the drafts to the same user", async () => {
    await end(await visitAnn());
    user = ann;

    const { app } = await visit();

    expect(app.drafts.of("conv_1")).toContain(secret);
    expect(app.unsent.attachmentsOf("conv_1").map(({ text }) => text)).toEqual([`All of the ${secret}`]);
  });

  test("leaves nothing to another user", async () => {
    const page = await visitAnn();
    await end(page);
    page.hide();
    user = bob;
    store.items = [];
    store.session.title = "";

    const { app } = await visit();

    expect(app.drafts.of("conv_1")).toBe("");
    expect(await kept()).not.toContain(secret);
  });
});

describe("a login that has run out", () => {
  test("is noticed by whatever is asked for next", async () => {
    const { app } = await visitAnn();
    user = null;

    await app.list.refresh();

    expect(app.login.isNeeded.value).toBe(true);
  });

  test("leaves what was sent for after the next one", async () => {
    const { app } = await visitAnn();
    app.newChat();
    app.drafts.set(null, `Another ${secret}`);
    user = null;
    await app.sendDraft();
    await settle();
    const { value: isNeeded } = app.login.isNeeded;
    user = ann;
    await app.login.logIn("csk_1");

    const next = await visit();

    expect(isNeeded).toBe(true);
    expect(reload).toHaveBeenCalledOnce();
    expect(next.app.drafts.of(null)).toBe(`Another ${secret}`);
  });
});
