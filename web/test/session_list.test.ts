import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { LastSeen } from "../src/sessions/last_seen";
import { SessionList } from "../src/sessions/session_list";
import type { WireConversation } from "../src/wire/protocol";

/** A request that the server has got and not answered. */
interface Asked {
  method: string;
  path: string;
  isPinned: boolean;
  answer: (body: object, status?: number) => void;
}

let asked: Asked[];
let list: SessionList;

beforeEach(() => {
  asked = [];
  vi.stubGlobal("document", { baseURI: "http://chat.test/" });
  vi.stubGlobal("fetch", ({ pathname: path, searchParams }: URL, { method = "" }: RequestInit) => {
    return new Promise<Response>((resolve) => {
      const answer = (body: object, status = 200) => resolve(Response.json(body, { status }));
      asked.push({ method, path, isPinned: searchParams.has("pinned"), answer });
    });
  });
  list = new SessionList(new LastSeen());
});

afterEach(() => vi.unstubAllGlobals());

const settle = () => new Promise((resolve) => setTimeout(resolve));

function named(id: string, title = id, updatedAt = 1): WireConversation {
  return { id, title, created_at: 0, updated_at: updatedAt, active_response_ids: [] };
}

/** Take from the queue what asks for the list, the question that has waited longest first. */
function nextQuestion(): (sessions: WireConversation[]) => Promise<void> {
  const [page, pinned] = [false, true].map((isPinned) => {
    const index = asked.findIndex((each) => each.method === "GET" && each.isPinned === isPinned);
    return asked.splice(index, 1)[0]!;
  });
  return async (sessions) => {
    page!.answer({ data: sessions, has_more: false });
    pinned!.answer({ data: [] });
    await settle();
  };
}

function nextRequest(method: string): Asked {
  const index = asked.findIndex((each) => each.method === method);
  return asked.splice(index, 1)[0]!;
}

async function begin(...sessions: WireConversation[]): Promise<void> {
  void list.refresh();
  await nextQuestion()(sessions);
}

const titles = () => list.sessions.value.map(({ title }) => title);
const refusal = { error: { code: "store_unavailable", message: "The store is away." } };

describe("a change that the server refuses", () => {
  test("is taken back, and nothing else is", async () => {
    await begin(named("a"), named("b"));
    void list.rename("a", "renamed");
    await settle();
    const shown = titles();
    list.add(named("c", "c", 2));
    list.hide("b");
    void list.remove("b");
    nextRequest("DELETE").answer({});
    await settle();

    nextRequest("POST").answer(refusal, 503);
    await settle();

    expect(shown).toEqual(["renamed", "b"]);
    expect(titles()).toEqual(["c", "a"]);
    expect(list.problem.value).toBe("The store is away.");
  });

  test("leaves a later one of the same conversation as it is", async () => {
    await begin(named("a"));
    void list.rename("a", "first");
    void list.rename("a", "second");
    await settle();

    nextRequest("POST").answer(refusal, 503);
    await settle();
    const shown = titles();
    nextRequest("POST").answer(refusal, 503);
    await settle();

    expect(shown).toEqual(["second"]);
    expect(titles()).toEqual(["a"]);
  });
});

test("changes come to the server in the order in which the reader made them", async () => {
  await begin(named("a"));
  void list.rename("a", "first");
  void list.rename("a", "second");
  await settle();
  const numAtOnce = asked.length;

  nextRequest("POST").answer(named("a", "first"));
  await settle();
  nextRequest("POST").answer(named("a", "second"));
  await settle();

  expect(numAtOnce).toBe(1);
  expect(titles()).toEqual(["second"]);
});

test("a change that is not confirmed outlives a reply that does not know of it", async () => {
  await begin(named("a"));
  void list.rename("a", "renamed");
  await begin(named("a"));

  expect(titles()).toEqual(["renamed"]);
});

describe("of two questions for the list", () => {
  test("the newer one is answered last, whichever reply comes last", async () => {
    void list.refresh();
    const answerFirst = nextQuestion();
    void list.refresh();
    const answerSecond = nextQuestion();

    await answerSecond([named("a"), named("b")]);
    await answerFirst([named("a")]);

    expect(titles()).toEqual(["a", "b"]);
  });

  test("the older one may fail without a word", async () => {
    void list.refresh();
    const older = [nextRequest("GET"), nextRequest("GET")];
    await begin(named("a"));

    for (const { answer } of older) answer(refusal, 500);
    await settle();

    expect(list.problem.value).toBeNull();
  });
});

describe("a reply that was on its way", () => {
  test("when a conversation began does not take it out of the list", async () => {
    await begin(named("a"));
    void list.refresh();
    const answerEarlier = nextQuestion();

    list.add(named("b", "b", 2));
    await answerEarlier([named("a")]);
    const shown = titles();
    await nextQuestion()([named("b", "b", 2), named("a"), named("c", "c", 0)]);

    expect(shown).toEqual(["b", "a"]);
    expect(titles()).toEqual(["b", "a", "c"]);
  });

  test("when one was deleted does not bring it back", async () => {
    await begin(named("a"), named("b"));
    void list.loadMore();
    const more = nextRequest("GET");

    void list.remove("b");
    nextRequest("DELETE").answer({});
    await settle();
    more.answer({ data: [named("b"), named("c")], has_more: false });
    await settle();

    expect(titles()).toEqual(["a", "c"]);
  });

  test("when one was renamed does not give it its old name", async () => {
    await begin(named("a"));
    void list.refresh();
    const answerEarlier = nextQuestion();

    void list.rename("a", "renamed");
    await settle();
    nextRequest("POST").answer(named("a", "renamed"));
    await settle();
    await answerEarlier([named("a")]);

    expect(titles()).toEqual(["renamed"]);
  });
});

test("while the server is away no copy takes the place of what it has told", async () => {
  await begin(named("a"), named("b"));
  const page = { data: [named("a")], has_more: false };
  vi.spyOn(LastSeen.prototype, "readList").mockResolvedValueOnce({ page, pinned: [], isCopy: true });

  await list.refresh();

  expect(titles()).toEqual(["a", "b"]);
});
