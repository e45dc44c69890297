import { signal } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { newAnswer } from "../src/chat/answer";
import { AnswerFeed, type Followed } from "../src/chat/answer_feed";
import { ApiError } from "../src/wire/api";
import { Connection } from "../src/wire/connection";
import { endOf } from "../src/wire/patience";
import type { NumberedEvent } from "../src/wire/protocol";
import { ended, number, wholeAnswer } from "./events";
import { FakeSocket, fakeBrowser } from "./fakes";

/** One reply with an event stream, driven by the test. */
class FakeStream {
  #control!: ReadableStreamDefaultController<Uint8Array>;
  readonly response: Response;

  constructor(
    readonly request: string,
    readonly init: RequestInit,
  ) {
    const body = new ReadableStream<Uint8Array>({ start: (control) => void (this.#control = control) });
    init.signal?.addEventListener("abort", () => this.fail());
    this.response = new Response(body);
  }

  get body(): Record<string, unknown> {
    return JSON.parse(this.init.body as string) as Record<string, unknown>;
  }

  send(...events: readonly object[]): void {
    for (const event of events) this.write(`data: ${JSON.stringify(event)}\n\n`);
  }

  write(text: string): void {
    this.#control.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.#control.close();
  }

  fail(): void {
    this.#control.error(new TypeError("network error"));
  }
}

let streams: FakeStream[];
let cancelled: string[];
/** The reply to the next create or resume, in place of a stream. */
let refusal: Response | null;
let isAway: boolean;
let connection: Connection;
let feed: AnswerFeed;
let settled: Followed[];
let lost: Followed[];

beforeEach(async () => {
  fakeBrowser();
  vi.spyOn(Math, "random").mockReturnValue(0);
  streams = [];
  cancelled = [];
  refusal = null;
  isAway = false;
  settled = [];
  lost = [];
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => {
    if (isAway) throw new TypeError("Failed to fetch");
    if (url.pathname === "/v1/models") return Response.json({ data: [], has_more: false });
    if (url.pathname.endsWith("/cancel")) {
      cancelled.push(url.pathname);
      return Response.json({});
    }
    if (refusal !== null) return refusal;
    streams.push(new FakeStream(`${init.method} ${url.pathname}${url.search}`, init));
    return stream().response;
  });
  feed = new AnswerFeed(() => connection);
  connection = new Connection(brokenSocket, {
    onLive: () => feed.onLive(),
    onEvent: (event) => feed.onEvent(event),
  });
  connection.connect();
  await vi.advanceTimersByTimeAsync(1_000);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function brokenSocket(): WebSocket {
  const socket = new FakeSocket();
  setTimeout(() => socket.drop(), 1);
  return socket as unknown as WebSocket;
}

const stream = () => streams.at(-1)!;
const settle = () => vi.advanceTimersByTimeAsync(400);

async function ask(): Promise<Followed> {
  const followed = feed.follow(signal(newAnswer(0)), {
    onAccepted: () => undefined,
    onSettled: (each) => settled.push(each),
    onLost: (each) => lost.push(each),
  });
  feed.create(followed, { model: "tiny", conversation: "conv_1", input: "Hello" });
  await settle();
  return followed;
}

describe("over HTTP an answer", () => {
  test("is asked for by a POST that can be repeated", async () => {
    await ask();

    expect(stream().request).toBe("POST /v1/responses");
    expect(stream().body).toEqual({
      model: "tiny",
      conversation: "conv_1",
      input: "Hello",
      stream: true,
    });
    expect(new Headers(stream().init.headers).get("Idempotency-Key")).toMatch(/^[0-9a-f]{32}$/);
  });

  test("asks to hear between the events too", async () => {
    await ask();

    expect(new Headers(stream().init.headers).has("x-chatserve-updates")).toBe(true);
  });

  test("comes by the same events", async () => {
    const { answer } = await ask();

    stream().send(...wholeAnswer);
    await settle();

    expect(answer.value).toMatchObject({ phase: "completed", text: "Hold the button." });
    expect(settled).toHaveLength(1);
  });

  test.each(["ends", "breaks"])("whose stream %s anywhere loses and repeats nothing", async (how) => {
    for (let cut = 1; cut < wholeAnswer.length; cut += 1) {
      const { answer } = await ask();
      stream().send(...wholeAnswer.slice(0, cut));
      await settle();
      if (how === "ends") stream().end();
      else stream().fail();
      await settle();

      expect(stream().request).toBe(
        `GET /v1/responses/resp_1?stream=true&starting_after=${cut - 1}`,
      );
      stream().send(...wholeAnswer.slice(cut));
      await settle();
      expect(answer.value).toMatchObject({ phase: "completed", text: "Hold the button." });
    }
  });

  test("that was not accepted when its stream broke is asked for again under the same key", async () => {
    const { answer } = await ask();
    stream().fail();
    await settle();
    stream().send(...wholeAnswer);
    await settle();

    const keys = streams.map(({ init }) => new Headers(init.headers).get("Idempotency-Key"));
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
    expect(answer.value.phase).toBe("completed");
  });

  test("goes on elsewhere when its gateway drains", async () => {
    const { answer } = await ask();
    stream().send(...wholeAnswer.slice(0, 6));
    stream().send({ type: "error", error: { code: "draining", message: "The gateway stops." } });
    await settle();
    stream().send(...wholeAnswer.slice(6));
    await settle();

    expect(lost).toEqual([]);
    expect(answer.value).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("is kept by comments, and left after a long silence", async () => {
    await ask();
    stream().send(...wholeAnswer.slice(0, 6));
    for (let quarter = 0; quarter < 8; quarter += 1) {
      await vi.advanceTimersByTimeAsync(15_000);
      stream().write(":\n\n");
    }
    const numBefore = streams.length;
    await vi.advanceTimersByTimeAsync(45_500);

    expect(numBefore).toBe(1);
    expect(stream().request).toContain("starting_after=5");
  });

  test("that is refused says why and until when, and the connection stays", async () => {
    const headers = { "Retry-After": "12" };
    refusal = Response.json(
      { error: { code: "queue_full", message: "full" } },
      { status: 429, headers },
    );

    const { answer } = await ask();

    const { retryAtMs = 0 } = answer.value.error ?? {};
    expect(answer.value).toMatchObject({ phase: "failed", error: { code: "queue_full" } });
    expect(Math.ceil((retryAtMs - Date.now()) / 1_000)).toBe(12);
    expect(connection.isLive).toBe(true);
  });

  test("that cannot be found again is lost, and the connection stays", async () => {
    await ask();
    stream().send(...wholeAnswer.slice(0, 6));
    await settle();
    refusal = Response.json({ error: { code: "response_not_found", message: "" } }, { status: 404 });
    stream().end();
    await vi.advanceTimersByTimeAsync(1_000);

    expect(lost).toHaveLength(1);
    expect(connection.isLive).toBe(true);
  });

  test("is stopped by a POST, once it has an id", async () => {
    const followed = await ask();
    feed.stop(followed);
    await settle();
    const before = [...cancelled];
    stream().send(wholeAnswer[0]!);
    await settle();
    const end = ended({ status: "incomplete", incomplete_details: { reason: "chatserve:cancelled" } });
    stream().send({ ...end, sequence_number: 1 } as NumberedEvent);
    await settle();

    expect(before).toEqual([]);
    expect(cancelled).toEqual(["/v1/responses/resp_1/cancel"]);
    expect(followed.answer.value.phase).toBe("stopped");
  });

  test("with a missing event is asked for again, and the broken stream is left", async () => {
    const { answer } = await ask();
    stream().send(...wholeAnswer.slice(0, 6), wholeAnswer[7]!);
    await settle();
    const [first, second] = streams;
    second!.send(...wholeAnswer.slice(6));
    await settle();

    expect(first!.init.signal?.aborted).toBe(true);
    expect(answer.value).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("goes on after a time without any server", async () => {
    const { answer } = await ask();
    stream().send(...wholeAnswer.slice(0, 6));
    isAway = true;
    await settle();
    stream().fail();
    await vi.advanceTimersByTimeAsync(20_000);
    const meanwhile = connection.state.value.kind;
    isAway = false;
    await vi.advanceTimersByTimeAsync(8_000);
    stream().send(...wholeAnswer.slice(6));
    await settle();

    expect(meanwhile).not.toBe("live");
    expect(answer.value).toMatchObject({ phase: "completed", text: "Hold the button." });
  });

  test("beside another one does not mix with it", async () => {
    const first = await ask();
    const firstStream = stream();
    const second = await ask();
    stream().send(...number([{ type: "response.created", response: { id: "resp_2", status: "queued" } }]));
    firstStream.send(...wholeAnswer);
    await settle();

    expect(first.answer.value).toMatchObject({ responseId: "resp_1", phase: "completed" });
    expect(second.answer.value).toMatchObject({ responseId: "resp_2", text: "" });
  });
});

test.each([
  [0, "unreachable", 1006],
  [401, "invalid_api_key", 4401],
  [403, "origin_not_allowed", 1008],
  [429, "rate_limit_exceeded", 4429],
  [502, "http_502", 1006],
  [503, "store_unavailable", 1013],
  [404, "response_not_found", undefined],
])("status %i (%s) is close code %s", (status, code, closeCode) => {
  expect(endOf(new ApiError(status, code, ""))?.code).toBe(closeCode);
});
