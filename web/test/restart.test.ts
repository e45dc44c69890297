import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { AnswerEvent } from "../src/wire/protocol";
import { wholeAnswer } from "./events";
import { storedItem } from "./fakes";
import { Harness } from "./harness";

const hourMs = 3_600_000;

let page: Harness;

beforeEach(async () => {
  page = new Harness();
  page.socket().accept();
});

afterEach(() => page.end());

const cuts = wholeAnswer.map((_event, index) => index).slice(1);
const texts = ["Hold", "Hold the", "Hold the button."];

/** Say something, and see the first events of the answer. */
async function seeBegin(cut: number): Promise<string> {
  await page.say("Hello");
  const lane = page.lane();
  await page.receive(wholeAnswer.slice(0, cut), lane);
  return lane;
}

describe("a machine that slept for an hour in the middle of an answer", () => {
  test.each(cuts)("and whose socket is dead without a word gets what came after event %i", async (cut) => {
    const lane = await seeBegin(cut);
    vi.setSystemTime(Date.now() + hourMs);
    page.connection.wake();
    await vi.advanceTimersByTimeAsync(6_000);
    const numSockets = page.sockets.length;

    page.socket().accept();
    const resume = page.sent("chatserve:response.resume").at(-1)!;
    await page.receive(wholeAnswer.slice(resume.starting_after! + 1), lane);

    expect(numSockets).toBe(2);
    expect(resume.starting_after).toBe(cut - 1);
    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("and whose socket survived goes on with it, and is asked only once", async () => {
    const lane = await seeBegin(6);
    vi.setSystemTime(Date.now() + hourMs);
    page.connection.wake();
    page.socket().receive({ type: "chatserve:pong" });
    await page.receive(wholeAnswer.slice(6), lane);
    await vi.advanceTimersByTimeAsync(6_000);

    expect(page.sockets).toHaveLength(1);
    expect(page.sent("chatserve:ping")).toHaveLength(2);
    expect(page.sent("chatserve:response.resume")).toEqual([]);
    expect(page.lastAnswer().phase).toBe("completed");
  });
});

describe("a server that was restarted in the middle of an answer", () => {
  test("has its log still: nothing is lost, however often it happens", async () => {
    const lane = await seeBegin(2);
    for (const [index, event] of wholeAnswer.slice(2).entries()) {
      page.socket().drop(1012, "this gateway stops");
      await vi.advanceTimersByTimeAsync(1_000);
      page.socket().accept();
      await page.settle();
      expect(page.sent("chatserve:response.resume").at(-1)).toMatchObject({
        starting_after: index + 1,
      });
      await page.receive([event], lane);
    }

    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test.each(texts)("has only the text so far, %j: it is shown, and what follows it", async (snapshot) => {
    const to = 5 + texts.indexOf(snapshot);
    const lane = await seeBegin(6);
    await page.reconnect();

    const gap = { type: "chatserve:response.gap", response_id: "resp_1", from: 0, to, snapshot };
    await page.receive([gap as AnswerEvent, ...wholeAnswer.slice(to + 1)], lane);

    expect(page.lastAnswer()).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("has forgotten the answer: what was stored of the session is shown", async () => {
    const lane = await seeBegin(6);
    page.store.items = [storedItem("user", "Hello", "msg_1")];

    await page.reconnect();
    await page.receive([{ type: "error", error: { code: "response_not_found", message: "" } }], lane);

    expect(page.session.entries.value.map(({ kind }) => kind)).toEqual(["user"]);
    expect(page.session.running.value).toBeNull();
  });

  test("without its store: an old copy does not take the place of what was said", async () => {
    const lane = await seeBegin(6);
    const { session } = page.store;
    vi.spyOn(page.lastSeen, "readSession").mockResolvedValue({ session, items: [], seenAtMs: 1 });

    await page.reconnect();
    await page.receive([{ type: "error", error: { code: "store_unavailable", message: "" } }], lane);
    await page.session.catchUp();

    expect(page.lastAnswer()).toMatchObject({ phase: "failed", text: "Hold" });
  });

  test("that says goodbye is left at once, and its answer resumed elsewhere", async () => {
    await seeBegin(6);

    page.socket().receive({ type: "chatserve:goaway", deadline_ms: 30_000, reason: "drain" });
    await vi.advanceTimersByTimeAsync(1_000);
    page.socket().accept();

    expect(page.sockets).toHaveLength(2);
    expect(page.sent("chatserve:response.resume")).toHaveLength(1);
    expect(page.sent("response.create")).toHaveLength(1);
  });
});
