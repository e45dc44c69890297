import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { AnswerEvent } from "../src/wire/protocol";
import { ended, wholeAnswer } from "./events";
import { storedItem } from "./fakes";
import { Harness, options } from "./harness";

let page: Harness;

beforeEach(() => {
  page = new Harness();
});

afterEach(() => page.end());

describe("a message", () => {
  test("of a new chat stores the session first and then creates the answer", async () => {
    page.socket().accept();

    await page.say("Hello");

    expect(page.store.calls[0]).toBe("POST /v1/conversations");
    expect(page.sent("response.create")).toEqual([
      {
        type: "response.create",
        stream_id: page.lane(),
        event_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        model: "tiny",
        conversation: "conv_1",
        input: "Hello",
        max_output_tokens: 1024,
      },
    ]);
  });

  test("gets its answer, and the next one goes into the same session", async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive(wholeAnswer);

    await page.say("Again");

    expect(page.lastAnswer().phase).toBe("sending");
    expect(page.session.entries.value.map(({ kind }) => kind)).toEqual([
      "user",
      "answer",
      "user",
      "answer",
    ]);
    expect(page.store.calls.filter((call) => call.startsWith("POST"))).toHaveLength(1);
    expect(page.sent("response.create")[1]!.stream_id).not.toBe(
      page.sent("response.create")[0]!.stream_id,
    );
  });

  test("is refused while an answer runs", async () => {
    page.socket().accept();
    await page.say("Hello");

    await page.say("Again");

    expect(page.session.entries.value).toHaveLength(2);
  });

  test("written before the connection is there goes out with it", async () => {
    await page.say("Hello");
    const before = page.sent("response.create").length;

    page.socket().accept();

    expect(before).toBe(0);
    expect(page.sent("response.create")).toHaveLength(1);
  });

  test("of a session that cannot be stored fails where its answer would be", async () => {
    page.socket().accept();
    page.store.refusal = { status: 503, code: "store_unavailable", message: "The store is away." };

    await page.say("Hello");

    expect(page.lastAnswer()).toMatchObject({ phase: "failed", responseId: null });
    expect(page.lastAnswer().error).toEqual({
      code: "store_unavailable",
      message: "The store is away.",
    });
  });

  test("that was refused is replaced by its retry", async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive([{ type: "error", error: { code: "queue_full", message: "full" } }]);

    await page.session.retry(options);
    await page.receive(wholeAnswer);

    expect(page.session.entries.value).toHaveLength(2);
    expect(page.lastAnswer().phase).toBe("completed");
  });

  test("that was refused gives back its text and makes room for the next one", async () => {
    page.socket().accept();
    await page.say("Much too long");
    await page.receive([
      { type: "error", error: { code: "context_length_exceeded", message: "full" } },
    ]);

    await page.say("Short");

    expect(page.refused).toEqual(["Much too long"]);
    expect(page.session.entries.value.map((entry) => entry.kind === "user" && entry.text)).toEqual([
      "Short",
      false,
    ]);
  });

  test("that was accepted is never given back, whatever becomes of its answer", async () => {
    page.socket().accept();
    await page.say("Hello");
    const failure = { ...ended({ status: "failed" }), sequence_number: 1 };
    await page.receive([wholeAnswer[0]!, failure as AnswerEvent]);

    expect(page.refused).toEqual([]);
    expect(page.session.withdraw()).toBeNull();
  });

  test("that was stopped before it went out is given back", async () => {
    await page.say("Hello");

    page.session.stop();

    expect(page.lastAnswer().phase).toBe("stopped");
    expect(page.refused).toEqual(["Hello"]);
  });

  test("whose answer failed stays, since it is stored, and its retry stands next to it", async () => {
    page.socket().accept();
    await page.say("Hello");
    const failure = { ...ended({ status: "failed" }), sequence_number: 1 };
    await page.receive([wholeAnswer[0]!, failure as AnswerEvent]);

    await page.session.retry(options);

    expect(page.session.entries.value).toHaveLength(2);
    expect(page.session.entries.value[1]!.siblings).toHaveLength(2);
    expect(page.sent("response.create").at(-1)).toMatchObject({
      input: [],
      "chatserve:parent_id": "msg_user",
    });
  });
});

test("another answer that is stopped before it began leaves the one that was there", async () => {
  page.socket().accept();
  await page.say("Hello");
  await page.receive(wholeAnswer);
  page.socket().drop();

  void page.session.regenerate(page.session.entries.value[1]!.key, options);
  await page.settle();
  expect(page.lastAnswer().phase).toBe("sending");
  page.session.stop();

  expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  expect(page.session.entries.value[1]!.siblings).toHaveLength(1);
});

describe("a deleted message", () => {
  const deletion = "DELETE /v1/conversations/conv_1/items/msg_user";

  beforeEach(async () => {
    page.socket().accept();
    await page.say("Hello");
    await page.receive(wholeAnswer.slice(0, 7));
  });

  test("stops its answer at once, and goes with one request when that is final", async () => {
    const key = page.session.entries.value[0]!.key;

    expect(page.session.hide(key)).toBe(2);
    expect(page.sent("response.cancel")).toHaveLength(1);
    expect(page.session.entries.value).toEqual([]);
    await page.session.delete(key);

    expect(page.store.calls.filter((call) => call.startsWith("DELETE"))).toEqual([deletion]);
    page.session.unhide(key);
    expect(page.session.entries.value).toEqual([]);
  });

  test("that the server keeps can be shown again", async () => {
    const key = page.session.entries.value[0]!.key;
    page.session.hide(key);
    page.store.refusal = { status: 503, code: "store_unavailable", message: "away" };

    await expect(page.session.delete(key)).rejects.toThrow("away");
    page.session.unhide(key);

    expect(page.session.entries.value).toHaveLength(2);
  });

  test("that the server does not have any more is gone", async () => {
    const key = page.session.entries.value[0]!.key;
    page.store.refusal = { status: 404, code: "message_not_found", message: "gone" };

    await page.session.delete(key);

    expect(page.session.entries.value).toEqual([]);
  });
});

test("a message is told of as taken once the server has it, not before", async () => {
  page.socket().accept();
  await page.say("Hello");
  const before = [...page.accepted];
  await page.receive(wholeAnswer.slice(0, 1));

  expect(before).toEqual([]);
  expect(page.accepted).toEqual(["Hello"]);
});

describe("a stored session", () => {
  test("shows its messages with the system prompt apart", async () => {
    page.store.items = [
      storedItem("system", "Be brief.", "msg_0"),
      storedItem("user", "Hello", "msg_1"),
      storedItem("assistant", "Hi!", "msg_2"),
    ];

    await page.session.open("conv_1");

    expect(page.session.systemPrompt.value).toBe("Be brief.");
    expect(page.session.entries.value.map(({ kind }) => kind)).toEqual(["user", "answer"]);
    expect(page.session.load.value.kind).toBe("ready");
  });

  test("opened in the middle of an answer follows it from its first event", async () => {
    page.socket().accept();
    page.store.items = [storedItem("user", "Hello", "msg_1")];
    page.store.session.active_response_ids = ["resp_1"];

    await page.session.open("conv_1");
    const [resume] = page.sent("chatserve:response.resume");
    await page.receive(wholeAnswer, resume!.stream_id);

    expect(resume).toMatchObject({ response_id: "resp_1" });
    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("whose answer ended while it was opened shows it once", async () => {
    const answer = {
      ...storedItem("assistant", "Hi!", "msg_2"),
      "chatserve:response_id": "resp_1",
    };
    page.store.items = [storedItem("user", "Hello", "msg_1"), answer];
    page.store.session.active_response_ids = ["resp_1"];

    await page.session.open("conv_1");

    expect(page.session.entries.value).toHaveLength(2);
    expect(page.session.running.value).toBeNull();
  });

  test("tells how its answers ended", async () => {
    const stopped = {
      status: "incomplete",
      "chatserve:incomplete_reason": "chatserve:cancelled",
    } as const;
    const cut = {
      status: "incomplete",
      "chatserve:incomplete_reason": "max_output_tokens",
    } as const;
    const failed = { status: "incomplete", "chatserve:error": { message: "lost" } } as const;
    page.store.items = [stopped, cut, failed].map((ending, index) => ({
      ...storedItem("assistant", "x", `msg_${index}`),
      ...ending,
    }));

    await page.session.open("conv_1");

    const phases = page.session.entries.value.map(
      (entry) => entry.kind === "answer" && entry.answer.value.phase,
    );
    expect(phases).toEqual(["stopped", "cut", "failed"]);
  });

  test("that is gone says so", async () => {
    page.store.refusal = { status: 404, code: "conversation_not_found", message: "gone" };

    await page.session.open("conv_1");

    expect(page.session.load.value.kind).toBe("missing");
  });
});

test("two sessions answer side by side without mixing", async () => {
  page.socket().accept();
  const other = page.makeSession();
  await page.say("Hello");
  const firstLane = page.lane();
  await other.send("Other", options);
  await page.settle();
  const otherEvents = wholeAnswer.map((event) =>
    "response" in event ? { ...event, response: { ...event.response, id: "resp_2" } } : event,
  );

  for (const [index, event] of wholeAnswer.slice(0, 7).entries()) {
    await page.receive([event], firstLane);
    await page.receive([otherEvents[index]!], page.lane());
  }

  expect(page.lastAnswer()).toMatchObject({ responseId: "resp_1", text: "Hold the" });
  expect(other.running.value?.value).toMatchObject({ responseId: "resp_2", text: "Hold the" });
});
