import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { CacheWatch } from "../src/cache/cache_watch";
import { inOrder } from "../src/cache/node_order";
import { cutTo, linesOf } from "../src/cache/node_words";
import type { WireCache } from "../src/wire/cache_snapshot";
import { cacheNode, cacheOf, cacheWorker, runningRequest, twoTenants } from "./cache_snapshots";

let cache: WireCache;
let asked: string[];
let watch: CacheWatch;

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  asked = [];
  const nothing = () => undefined;
  vi.stubGlobal("document", {
    hidden: false,
    baseURI: "http://chat.test/",
    addEventListener: nothing,
    removeEventListener: nothing,
  });
  vi.stubGlobal("fetch", async (url: URL) => {
    asked.push(`${url.pathname}${url.search}`);
    return Response.json(cache);
  });
  cache = cacheOf(cacheWorker({ id: "a", model: "other" }), cacheWorker({ id: "b" }));
  watch = new CacheWatch(null, "tiny");
});

afterEach(() => {
  watch.poll.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function look(ms = 0): Promise<void> {
  watch.poll.start();
  await vi.advanceTimersByTimeAsync(ms);
}

test("the worker of the model in use is shown until another is chosen", async () => {
  await look();
  const first = watch.worker.value?.id;

  watch.chooseWorker("a");

  expect(first).toBe("b");
  expect(watch.worker.value?.id).toBe("a");
  expect(asked[0]).toBe("/v1/chatserve/cache");
});

test("a worker that is gone leaves its place to one that is there", async () => {
  await look();
  watch.chooseWorker("a");
  cache = cacheOf(cacheWorker({ id: "b" }));

  await look(500);

  expect(watch.worker.value?.id).toBe("b");
});

test("a chosen request is followed until it ends, or is let go", async () => {
  await look();
  watch.toggleRequest("resp_1");
  cache = cacheOf(cacheWorker({ id: "b", requests: [runningRequest({ pages: [4, 0, 7, 8] })] }));
  await look(500);
  const pages = watch.request.value?.pages;
  watch.toggleRequest("resp_1");
  const letGo = watch.request.value;
  watch.toggleRequest("resp_1");
  cache = cacheOf(cacheWorker({ id: "b", requests: [] }));
  await look(500);

  expect(pages).toEqual([4, 0, 7, 8]);
  expect(letGo).toBeNull();
  expect(watch.request.value).toBeNull();
});

test("a worker whose snapshot stays the same is silent, one with a wrong clock is not", async () => {
  let takenAt = 5;
  vi.stubGlobal("fetch", async () => {
    takenAt += 1;
    return Response.json(cacheOf(cacheWorker({ id: "b", taken_at: takenAt })));
  });
  await look(10_000);
  const whileTelling = watch.silenceS.value;
  vi.stubGlobal("fetch", async () => Response.json(cacheOf(cacheWorker({ id: "b", taken_at: 5 }))));

  await look(6_000);

  expect(whileTelling).toBeNull();
  expect(watch.silenceS.value).toBeGreaterThan(4);
});

test("an operator can look at one tenant", async () => {
  watch = new CacheWatch("acme & co", null);

  await look();

  expect(asked).toEqual(["/v1/chatserve/cache?tenant=acme+%26+co"]);
});

test.each([
  ["tokens", [2, 3, 1, 4, 5]],
  ["hits", [3, 4, 1, 2, 5]],
  ["lastUse", [4, 1, 2, 3, 5]],
] as const)("rows can be had by %s, equal ones by age", (order, ids) => {
  expect(inOrder(twoTenants(), order).map(({ id }) => id)).toEqual(ids);
});

test("a node is told with all that is known of it, and nothing that is not", () => {
  const told = linesOf(cacheNode(1, null, { num_sharers: 3, pinned: true, scope: "public" }));
  const foreign = linesOf(cacheNode(2, null, { scope: "other", text: null }));

  expect(told).toEqual([
    "64 tokens, 4 pages",
    "found 1 time",
    "last used 10 sec ago",
    "3 running requests share it",
    "Everybody's, pinned",
  ]);
  expect(foreign.at(-1)).toBe("Other tenants'");
});

test("what a node does not tell is neither said nor sorted first", () => {
  const silent = cacheNode(1, null, { num_hits: null, idle_s: null });
  const telling = cacheNode(2, null, { num_hits: 0, idle_s: 900 });

  expect(linesOf(silent)).toEqual(["64 tokens, 4 pages", "Yours"]);
  for (const order of ["hits", "lastUse"] as const) {
    expect(inOrder([silent, cacheNode(3, null, silent), telling], order)[0]).toBe(telling);
  }
});

test("labels are cut by what their characters take", () => {
  expect(cutTo("short", 10)).toBe("short");
  expect(cutTo("a line\nbreak and more", 12)).toBe("a line break…");
  expect(cutTo("漢字漢字漢字", 6)).toBe("漢字漢…");
});
