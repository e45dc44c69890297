/** Stand-ins for the browser: a socket that a test drives, and a gateway's HTTP surface. */

import { vi } from "vitest";

import type {
  ClientMessage,
  WireConversation,
  WireItem,
  WireModel,
  WirePrompt,
} from "../src/wire/protocol";

export class FakeSocket {
  readyState = 0;
  sent: ClientMessage[] = [];
  onmessage: ((message: { data: unknown }) => void) | null = null;
  onclose: ((closed: { code: number; reason: string }) => void) | null = null;

  send(text: string): void {
    this.sent.push(JSON.parse(text) as ClientMessage);
  }

  close(): void {
    this.readyState = 3;
  }

  /** The server accepts and says its first word. */
  accept(): void {
    this.readyState = 1;
    this.receive({ type: "chatserve:connection.opened" });
  }

  receive(event: object): void {
    this.onmessage?.({ data: JSON.stringify(event) });
  }

  /** The connection ends from the other side. */
  drop(code = 1006, reason = ""): void {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }
}

/** The channel between tabs, in one process. */
export class FakeChannel {
  static open: FakeChannel[] = [];
  onmessage: ((message: { data: unknown }) => void) | null = null;

  constructor() {
    FakeChannel.open.push(this);
  }

  postMessage(data: unknown): void {
    for (const other of FakeChannel.open) if (other !== this) other.onmessage?.({ data });
  }
}

interface FakeLock {
  readonly name: string;
}

type LockTask = (lock: FakeLock | null) => Promise<void>;

/** The locks of a browser, as far as tabs use them: each is held until its tab is closed. */
export class FakeLocks {
  /** Nobody who sets a limit to the wait for a lock gets it in time. */
  static isSlow = false;
  readonly #held = new Map<string, FakeTab | null>();
  readonly #tab: FakeTab | null;

  constructor(locks?: FakeLocks, tab: FakeTab | null = null) {
    if (locks !== undefined) this.#held = locks.#held;
    this.#tab = tab;
  }

  async query(): Promise<{ held: { name: string }[] }> {
    return { held: [...this.#held.keys()].map((name) => ({ name })) };
  }

  async request(
    name: string,
    ...[options, task]: [LockOptions, LockTask] | [LockTask, undefined?]
  ): Promise<void> {
    if (task === undefined) return (options as LockTask)({ name });
    const { ifAvailable = false, signal } = options as LockOptions;
    const isHeld = this.#held.has(name);
    if (isHeld && ifAvailable) return task(null);
    if (isHeld || (FakeLocks.isSlow && signal !== undefined)) throw new DOMException("late", "TimeoutError");
    this.#held.set(name, this.#tab);
    return task({ name });
  }

  /** What a tab that is closed held is free. */
  release(tab: FakeTab): void {
    for (const [name, holder] of this.#held) if (holder === tab) this.#held.delete(name);
  }
}

/** What one tab of a browser has of its own, and what it has with the others. */
export class FakeTab {
  readonly session = new Map<string, string>();

  /** The tab has the browser's attention: what the page asks for is asked of it. */
  enter(locks: FakeLocks, storage: Map<string, string>): void {
    vi.stubGlobal("sessionStorage", storageOf(this.session));
    vi.stubGlobal("localStorage", storageOf(storage));
    vi.stubGlobal("navigator", { locks: new FakeLocks(locks, this) });
  }
}

function storageOf(items: Map<string, string>): object {
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => items.set(name, value),
    removeItem: (name: string) => items.delete(name),
  };
}

/** What the page needs of a browser, with time that only moves when a test says so. */
export function fakeBrowser(): void {
  vi.useFakeTimers({ now: 0 });
  vi.stubGlobal("document", { hidden: true, baseURI: "http://chat.test/" });
  vi.stubGlobal("navigator", {});
}

/** The parts of a window that the page listens to and writes to. */
export function fakeWindow(): { goTo(hash: string): void; leave(): void } {
  const listeners = new Map<string, () => void>();
  const location = { hash: "" };
  const listen = (type: string, listener: () => void) => listeners.set(type, listener);
  vi.stubGlobal("document", {
    hidden: true,
    baseURI: "http://chat.test/",
    addEventListener: listen,
  });
  vi.stubGlobal("window", { addEventListener: listen });
  FakeChannel.open = [];
  vi.stubGlobal("BroadcastChannel", FakeChannel);
  vi.stubGlobal("location", location);
  vi.stubGlobal("history", {
    replaceState: (_state: unknown, _title: string, hash: string) => (location.hash = hash),
  });
  return {
    goTo: (hash) => {
      location.hash = hash;
      listeners.get("hashchange")?.();
    },
    leave: () => listeners.get("pagehide")?.(),
  };
}

export interface FakeStore {
  session: WireConversation;
  items: WireItem[];
  models: WireModel[];
  prompts: WirePrompt[];
  /** Requests as "METHOD path", in order. */
  calls: string[];
  /** When set, every request is answered by this. */
  refusal: { status: number; code: string; message: string } | null;
}

/** Serve one session over a stubbed `fetch`. */
export function fakeStore(): FakeStore {
  const session = { id: "conv_1", title: "", created_at: 0, updated_at: 0 };
  const store: FakeStore = {
    session: { ...session, active_response_ids: [] },
    items: [],
    models: [{ id: "tiny" }],
    prompts: [],
    calls: [],
    refusal: null,
  };
  vi.stubGlobal("fetch", async (url: URL, { method }: { method: string }) => {
    store.calls.push(`${method} ${url.pathname}`);
    if (store.refusal !== null) {
      return Response.json({ error: store.refusal }, { status: store.refusal.status });
    }
    if (url.pathname.endsWith("/items")) {
      return Response.json(pageOf(inOneLine(store.items), url.searchParams));
    }
    if (url.pathname.startsWith("/v1/responses/")) {
      return Response.json({ id: url.pathname.split("/").at(-1), status: "in_progress" });
    }
    if (url.pathname === "/v1/chatserve/me") {
      return Response.json({ tenant: "default", user: "local", role: "operator", key_id: null });
    }
    if (url.pathname === "/v1/models") {
      return Response.json({ data: store.models, has_more: false });
    }
    if (url.pathname === "/v1/chatserve/prompts") {
      return Response.json({ data: store.prompts });
    }
    if (url.pathname === "/v1/chatserve/conversations") {
      return Response.json({ data: [store.session], has_more: false });
    }
    return Response.json(store.session);
  });
  return store;
}

/** Return a page of items, the newest first, as the page of the browser asks for them. */
function pageOf(items: readonly WireItem[], query: URLSearchParams): object {
  const newestFirst = items.toReversed();
  const after = newestFirst.findIndex(({ id }) => id === query.get("after"));
  const end = after + 1 + Number(query.get("limit"));
  return { data: newestFirst.slice(after + 1, end), has_more: end < newestFirst.length };
}

/** Return items that name no parent as followers of the one before. */
function inOneLine(items: readonly WireItem[]): WireItem[] {
  return items.map((item, index) => ({
    "chatserve:parent_id": items[index - 1]?.id ?? null,
    ...item,
  }));
}

export function storedItem(role: WireItem["role"], text: string, id: string): WireItem {
  return { id, type: "message", role, status: "completed", content: [{ type: "text", text }] };
}
