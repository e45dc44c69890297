import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { markWords } from "../src/sessions/marked_words";
import { SessionSearch } from "../src/sessions/session_search";
import type { WireHit, WireHitList } from "../src/wire/protocol";

let asked: { q: string | null; cursor: string | null; reply: (page: WireHitList) => void }[];
let search: SessionSearch;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { baseURI: "http://chat.test/" });
  asked = [];
  vi.stubGlobal("fetch", ({ searchParams }: URL) => {
    return new Promise<Response>((resolve) => {
      asked.push({
        q: searchParams.get("q"),
        cursor: searchParams.get("cursor"),
        reply: (page) => resolve(Response.json(page)),
      });
    });
  });
  search = new SessionSearch();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function hit(id: string, ...excerpts: string[]): WireHit {
  const conversation = { id, title: id, created_at: 0, updated_at: 0, active_response_ids: [] };
  return {
    conversation,
    matches: excerpts.map((excerpt) => ({ item_id: excerpt, role: "user", excerpt })),
  };
}

const settle = () => vi.advanceTimersByTimeAsync(200);

async function reply(index: number, page: Partial<WireHitList>): Promise<void> {
  asked[index]!.reply({ data: [], cursor: null, ...page });
  await settle();
}

test("asks once the reader pauses, for the words without the space around them", async () => {
  search.type("r");
  search.type(" router ");
  await settle();

  expect(asked.map(({ q }) => q)).toEqual(["router"]);
  expect(search.isSearching.value).toBe(true);
});

test("goes on by itself while it has found little and there is more to look at", async () => {
  search.type("router");
  await settle();
  await reply(0, { cursor: "c1" });
  await reply(1, { data: [hit("a", "x")], cursor: "c2" });
  await reply(2, { data: [hit("a", "y"), hit("b")] });

  expect(asked.map(({ cursor }) => cursor)).toEqual([null, "c1", "c2"]);
  expect(search.hits.value.map(({ conversation }) => conversation.id)).toEqual(["a", "b"]);
  expect(search.hits.value[0]!.matches.map(({ item_id }) => item_id)).toEqual(["x", "y"]);
  expect([search.isSearching.value, search.hasMore.value]).toEqual([false, false]);
});

test("stops when it has found enough, and goes on when it is asked to", async () => {
  search.type("router");
  await settle();
  await reply(0, { data: Array.from({ length: 20 }, (_, n) => hit(`s${n}`)), cursor: "c1" });
  expect([asked.length, search.hasMore.value]).toEqual([1, true]);

  void search.loadMore();
  await reply(1, { data: [hit("last")] });

  expect(search.hits.value).toHaveLength(21);
  expect(search.hasMore.value).toBe(false);
});

test("an answer to words that are no longer looked for is dropped", async () => {
  search.type("router");
  await settle();
  search.type("invoice");
  await settle();
  await reply(1, { data: [hit("new")] });
  await reply(0, { data: [hit("old")] });

  expect(search.hits.value.map(({ conversation }) => conversation.id)).toEqual(["new"]);
});

test("no words end the search", async () => {
  search.type("router");
  await settle();
  search.clear();
  await reply(0, { data: [hit("old")] });

  expect(search.hits.value).toEqual([]);
  expect([search.isActive.value, search.isSearching.value]).toEqual([false, false]);
});

describe("the words found are marked", () => {
  test.each([
    ["Reset the Router now", "router", ["Reset the ", "Router", " now"]],
    ["a  b a b", "a b", ["", "a  b", " ", "a b", ""]],
    ["1 + 1 (one)", "(one)", ["1 + 1 ", "(one)", ""]],
    ["nothing here", "router", ["nothing here"]],
    ["text", " ", ["text"]],
  ])("in %j for %j", (text, words, pieces) => {
    expect(markWords(text, words)).toEqual(pieces);
  });
});
