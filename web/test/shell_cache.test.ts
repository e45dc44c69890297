import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { ShellCache, type Fetching } from "../src/shell_cache";

const root = "https://chat.test/";
const files: Record<string, string> = { "": "page 1", "assets/index-1.js": "run 1", "favicon.svg": "<svg/>" };

let server: Record<string, string>;
let asked: string[];
/** Why the browser keeps nothing more; a promise of it never comes. */
let full: Promise<never> | null;
/** What the worker is kept alive for. */
let lasting: Promise<unknown>[];
let stored: Map<string, Map<string, Response>>;
/** What the server does instead of serving its files. */
let trouble: ((signal: AbortSignal | undefined) => Promise<Response>) | null;

const urlOf = (request: Request | string) => (typeof request === "string" ? request : request.url);

beforeEach(() => {
  server = { ...files };
  asked = [];
  stored = new Map();
  trouble = null;
  full = null;
  lasting = [];
  vi.stubGlobal("fetch", async (request: Request | string, init?: RequestInit) => {
    if (trouble !== null) return trouble(init?.signal ?? undefined);
    const path = urlOf(request).slice(root.length);
    asked.push(path);
    return path in server ? new Response(server[path]) : new Response("", { status: 404 });
  });
  vi.stubGlobal("caches", {
    open: async (name: string) => {
      const entries = stored.get(name) ?? new Map<string, Response>();
      stored.set(name, entries);
      return {
        addAll: async (urls: string[]) => {
          for (const url of urls) entries.set(url, await fetch(url));
        },
        match: async (url: string) => entries.get(url)?.clone(),
        put: async (url: string, reply: Response) => void (await full, entries.set(url, reply)),
      };
    },
    keys: async () => [...stored.keys()],
    delete: async (name: string) => stored.delete(name),
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function installed(version = "1", script = "assets/index-1.js"): Promise<ShellCache> {
  const cache = new ShellCache({ version, list: ["./", "favicon.svg", script] }, root);
  await cache.fill();
  asked = [];
  return cache;
}

function request(path: string, fields: { mode?: string; method?: string; url?: string } = {}): Fetching {
  const request = { url: `${root}${path}`, method: "GET", mode: "cors", ...fields } as Request;
  return { request, waitUntil: (work) => void lasting.push(work) };
}

async function text(reply: Promise<Response> | null): Promise<string | null> {
  return reply && (await reply).text();
}

const load = (cache: ShellCache) => text(cache.replyTo(request("", { mode: "navigate" })));
const goAway = () => (trouble = async () => Promise.reject(new TypeError("Failed to fetch")));

describe("the document", () => {
  test("is the server's, so that a new build is used at the next load", async () => {
    const cache = await installed();
    server[""] = "page 2";

    expect(await load(cache)).toBe("page 2");
  });

  test("is the one seen last while the server is away", async () => {
    const cache = await installed();
    server[""] = "page 2";
    await load(cache);
    goAway();

    expect(await load(cache)).toBe("page 2");
  });

  test("is the one seen last when a proxy answers for a dead server", async () => {
    const cache = await installed();
    trouble = async () => new Response("bad gateway", { status: 502 });

    expect(await load(cache)).toBe("page 1");
  });

  test("does not wait for a server that is silent", async () => {
    vi.useFakeTimers();
    const cache = await installed();
    vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
      const control = new AbortController();
      setTimeout(() => control.abort(), ms);
      return control.signal;
    });
    trouble = (signal) =>
      new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));

    const loading = load(cache);
    await vi.advanceTimersByTimeAsync(4_000);

    expect(await loading).toBe("page 1");
    vi.restoreAllMocks();
  });
});

test("a file with a hash in its name is not asked for again", async () => {
  const cache = await installed();

  expect(await text(cache.replyTo(request("assets/index-1.js")))).toBe("run 1");
  expect(asked).toEqual([]);
});

test("a file of a newer build is kept with its first use", async () => {
  const cache = await installed();
  server["assets/index-2.js"] = "run 2";
  await text(cache.replyTo(request("assets/index-2.js")));
  goAway();

  expect(await text(cache.replyTo(request("assets/index-2.js")))).toBe("run 2");
});

test("what is not found is not kept", async () => {
  const cache = await installed();
  await text(cache.replyTo(request("assets/index-2.js")));
  server["assets/index-2.js"] = "run 2";

  expect(await text(cache.replyTo(request("assets/index-2.js")))).toBe("run 2");
});

describe("a browser that keeps nothing more", () => {
  const fullReasons: [string, () => Promise<never>][] = [
    ["says so", () => Promise.reject(new DOMException("", "QuotaExceededError"))],
    ["is silent", () => new Promise<never>(() => undefined)],
  ];

  test.each(fullReasons)("and %s shows what the server has", async (_, reason) => {
    const cache = await installed();
    server = { ...server, "": "page 2", "assets/index-2.js": "run 2" };
    full = reason();
    full.catch(() => undefined);

    expect(await load(cache)).toBe("page 2");
    expect(await text(cache.replyTo(request("assets/index-2.js")))).toBe("run 2");
  });

  test("leaves the worker without an error", async () => {
    const cache = await installed();
    full = Promise.reject(new DOMException("", "QuotaExceededError"));
    await load(cache);

    expect(lasting).toHaveLength(1);
    await expect(lasting[0]).resolves.toBeUndefined();
  });

  test("and gives nothing back shows what the server has", async () => {
    const cache = await installed();
    vi.stubGlobal("caches", { open: async () => Promise.reject(new DOMException("", "SecurityError")) });

    expect(await text(cache.replyTo(request("assets/index-1.js")))).toBe("run 1");
  });
});

test("another file of the page is the server's, else the one that was kept", async () => {
  const cache = await installed();
  server["favicon.svg"] = "<svg>2</svg>";
  const fresh = await text(cache.replyTo(request("favicon.svg")));
  goAway();

  expect(fresh).toBe("<svg>2</svg>");
  expect(await text(cache.replyTo(request("favicon.svg")))).toBe("<svg/>");
});

test.each([
  ["v1/models", {}],
  ["v1/responses", { method: "POST" }],
  ["metrics", { mode: "navigate" }],
  ["", { method: "POST", mode: "navigate" }],
])("%j %j is left to the server", async (path, fields) => {
  expect((await installed()).replyTo(request(path, fields))).toBeNull();
});

test("other sites are left alone", async () => {
  const foreign = request("", { url: "https://other.test/assets/index-1.js" });

  expect((await installed()).replyTo(foreign)).toBeNull();
});

test("a new version drops the old one, and what others have kept stays", async () => {
  await installed("1");
  stored.set("someone-elses", new Map());
  const cache = await installed("2");

  await cache.dropOthers();

  expect([...stored.keys()]).toEqual(["someone-elses", "chatserve-shell-2"]);
});
