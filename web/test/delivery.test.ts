import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { AnswerEvent } from "../src/wire/protocol";
import { ended, wholeAnswer } from "./events";
import { storedItem } from "./fakes";
import { Harness } from "./harness";

let page: Harness;

beforeEach(() => {
  page = new Harness();
});

afterEach(() => page.end());

test("half a character in a message, its title or the system prompt keeps none of them from the server", async () => {
  const bodies: unknown[] = [];
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", (url: URL, init: RequestInit) => {
    if (typeof init.body === "string") bodies.push(JSON.parse(init.body));
    return fetch(url, init);
  });
  page.socket().accept();
  page.session.systemPrompt.value = "Be \ude00brief";

  await page.say("Hello\ud83d");

  const items = [{ type: "message", role: "system", content: "Be \ufffdbrief" }];
  expect(bodies).toEqual([expect.objectContaining({ title: "Hello\ufffd", items })]);
  expect(page.sent("response.create")[0]).toMatchObject({ input: "Hello\ufffd" });
});

describe("a dropped socket", () => {
  test("at any event loses and repeats nothing", async () => {
    for (let cut = 1; cut < wholeAnswer.length; cut += 1) {
      page.session = page.makeSession();
      page.connection.wake();
      page.socket().accept();
      await page.say("Hello");
      const streamId = page.lane();
      await page.receive(wholeAnswer.slice(0, cut), streamId);

      await page.reconnect();
      const resume = page.sent("chatserve:response.resume").at(-1)!;
      await page.receive(wholeAnswer.slice((resume.starting_after ?? -1) + 1), resume.stream_id);

      expect(resume).toMatchObject({ response_id: "resp_1", starting_after: cut - 1 });
      expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
    }
  });

  test("before the answer was accepted sends the same frame again", async () => {
    page.socket().accept();
    await page.say("Hello");

    await page.reconnect();
    await page.receive(wholeAnswer);

    const [first, second] = page.sent("response.create");
    expect(second).toEqual(first);
    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("that the message itself causes is not provoked for ever", async () => {
    page.socket().accept();
    await page.say("Hello");

    for (let attempt = 0; attempt < 5; attempt += 1) await page.reconnect();

    expect(page.sent("response.create")).toHaveLength(3);
    expect(page.lastAnswer()).toMatchObject({ phase: "failed", error: { code: "undeliverable" } });
  });

  test("before the answer was accepted may find it over, with its log gone", async () => {
    page.socket().accept();
    await page.say("Hello");

    await page.reconnect();
    const end = { ...ended({ status: "completed" }), sequence_number: 8 } as AnswerEvent;
    const gap = { type: "chatserve:response.gap", response_id: "resp_1", from: 0, to: 7 } as const;
    await page.receive([{ ...gap, snapshot: "Hi!" }, end]);

    expect(page.lastAnswer()).toMatchObject({
      phase: "completed",
      text: "Hi!",
      responseId: "resp_1",
    });
  });

  test("whose answer cannot be resumed any more shows what was stored of it", async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive(wholeAnswer.slice(0, 6));
    const answer = {
      ...storedItem("assistant", "Hold on.", "msg_answer"),
      "chatserve:response_id": "resp_1",
    };
    page.store.items = [storedItem("user", "Hello", "msg_user"), answer];

    await page.reconnect();
    const gone = { type: "error", error: { code: "response_not_found", message: "gone" } } as const;
    await page.receive([gone]);

    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold on." });
  });

  test("whose running answer cannot be resumed says so and does not ask again", async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive(wholeAnswer.slice(0, 6));
    page.store.items = [storedItem("user", "Hello", "msg_user")];
    page.store.session.active_response_ids = ["resp_1"];

    await page.reconnect();
    await page.receive([{ type: "error", error: { code: "server_error", message: "no" } }]);

    expect(page.lastAnswer()).toMatchObject({ phase: "failed", text: "Hold" });
    expect(page.sent("chatserve:response.resume")).toHaveLength(1);
  });

  test("a missing event is asked for on the same socket", async () => {
    page.socket().accept();
    await page.say("Hello");
    const streamId = page.lane();
    await page.receive([...wholeAnswer.slice(0, 6), ...wholeAnswer.slice(7)], streamId);

    const [resume] = page.sent("chatserve:response.resume");
    await page.receive(wholeAnswer.slice(6), streamId);

    expect(resume).toMatchObject({ starting_after: 5, stream_id: streamId });
    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });
});

describe("a stop", () => {
  const cancelled = {
    ...ended({ status: "incomplete", incomplete_details: { reason: "chatserve:cancelled" } }),
    sequence_number: 2,
  } as AnswerEvent;

  test("before the connection is there sends nothing at all", async () => {
    await page.say("Hello");

    page.session.stop();
    page.socket().accept();

    expect(page.lastAnswer().phase).toBe("stopped");
    expect(page.sent("response.create")).toEqual([]);
  });

  test("before the answer has an id names its lane, and its id once it is known", async () => {
    page.socket().accept();
    await page.say("Hello");

    page.session.stop();
    await page.receive(wholeAnswer.slice(0, 1));

    expect(page.sent("response.cancel")).toEqual([
      { type: "response.cancel", stream_id: page.lane() },
      { type: "response.cancel", response_id: "resp_1" },
    ]);
  });

  test("in the queue ends the answer and frees the composer", async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive(wholeAnswer.slice(0, 2));

    page.session.stop();
    page.session.stop();
    const isStopping = page.lastAnswer().isStopping;
    await page.receive([cancelled]);

    expect(isStopping).toBe(true);
    expect(page.sent("response.cancel")).toHaveLength(1);
    expect(page.lastAnswer().phase).toBe("stopped");
    expect(page.session.running.value).toBeNull();
  });

  test("while the socket is away is said again on the next one", async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive(wholeAnswer.slice(0, 6));
    page.socket().drop();

    page.session.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    page.socket().accept();

    expect(page.socket().sent.map(({ type }) => type)).toEqual([
      "chatserve:response.resume",
      "response.cancel",
    ]);
  });
});

describe("a lost first event", () => {
  test.each([1, 2, 3, wholeAnswer.length - 1])("is asked for by what comes from number %i on", async (first) => {
    page.socket().accept();
    await page.say("Hello");

    await page.receive(wholeAnswer.slice(first));
    const resumes = page.sent("chatserve:response.resume");
    await page.receive(wholeAnswer);

    expect(resumes).toHaveLength(1);
    expect(resumes[0]).toMatchObject({ response_id: "resp_1" });
    expect(resumes[0]).not.toHaveProperty("starting_after");
    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });
});

describe("an answer of which nothing is heard on a live connection", () => {
  beforeEach(async () => {
    page.socket().accept();
    await page.say("Hello");
  });

  test("is asked after, and ends as the server says", async () => {
    const terminal = wholeAnswer.at(-1)!;
    await page.receive(wholeAnswer.slice(0, -1));
    expect(page.lastAnswer().phase).toBe("streaming");

    await vi.advanceTimersByTimeAsync(20_000);
    const resumes = page.sent("chatserve:response.resume");
    await page.receive([terminal]);
    await vi.advanceTimersByTimeAsync(600_000);

    expect(resumes).toMatchObject([
      { response_id: "resp_1", starting_after: wholeAnswer.length - 2, stream_id: page.lane() },
    ]);
    expect(page.lastAnswer().phase).toBe("completed");
    expect(page.sent("chatserve:response.resume")).toHaveLength(1);
    expect(page.sent("response.create")).toHaveLength(1);
  });

  test("is asked after ever more rarely, and is asked for only once", async () => {
    await page.receive(wholeAnswer.slice(0, 4));

    const numAsked: number[] = [];
    for (let minute = 1; minute <= 30; minute += 1) {
      for (let sixth = 0; sixth < 6; sixth += 1) {
        await vi.advanceTimersByTimeAsync(10_000);
        page.socket().receive({ type: "chatserve:pong" });
      }
      numAsked.push(page.sent("chatserve:response.resume").length);
    }

    expect(numAsked[0]).toBeGreaterThanOrEqual(2);
    expect(numAsked.at(-1)).toBeLessThanOrEqual(12);
    expect(page.sent("response.create")).toHaveLength(1);
    expect(page.lastAnswer().phase).toBe("prefilling");
  });

  test("is left alone while it waits or is read, and says so", async () => {
    await page.receive(wholeAnswer.slice(0, 2));
    for (let position = 20; position > 0; position -= 1) {
      await page.receive([{ type: "chatserve:queue.updated", response_id: "resp_1", position }]);
      await vi.advanceTimersByTimeAsync(8_000);
      page.socket().receive({ type: "chatserve:pong" });
    }

    expect(page.sent("chatserve:response.resume")).toHaveLength(0);
  });

  test("is left alone when it is no longer followed", async () => {
    await page.receive(wholeAnswer.slice(0, 4));
    page.session.close();
    await vi.advanceTimersByTimeAsync(18_000);

    expect(page.sent("chatserve:response.resume")).toHaveLength(0);
  });
});
