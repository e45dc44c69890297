import { describe, expect, test } from "vitest";

import { readEvents } from "../src/wire/event_stream";

async function read(pieces: Uint8Array[]): Promise<(string | null)[]> {
  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      for (const piece of pieces) stream.enqueue(piece);
      stream.close();
    },
  });
  const events: (string | null)[] = [];
  for await (const data of readEvents(body)) events.push(data);
  return events;
}

const bytes = (text: string) => new TextEncoder().encode(text);

/** What a server or a proxy may make of three events and a sign of life. */
const streams = {
  "line feeds": 'event: a\ndata: {"a":"é€😀"}\n\n:\n\ndata: b1\ndata: b2\n\nid: 7\nretry: 10\ndata:c\n\n',
  "carriage returns and line feeds":
    'event: a\r\ndata: {"a":"é€😀"}\r\n\r\n:\r\n\r\ndata: b1\r\ndata: b2\r\n\r\ndata:c\r\n\r\n',
  "carriage returns": 'event: a\rdata: {"a":"é€😀"}\r\r:\r\rdata: b1\rdata: b2\r\rdata:c\r\r\n',
};

describe.each(Object.entries(streams))("a stream with %s", (_name, text) => {
  const whole = bytes(text);
  const expected = ['{"a":"é€😀"}', null, "b1\nb2", "c"];

  test("is the same wherever it is cut in two", async () => {
    for (let cut = 0; cut <= whole.length; cut += 1) {
      expect(await read([whole.slice(0, cut), whole.slice(cut)])).toEqual(expected);
    }
  });

  test("is the same byte by byte", async () => {
    expect(await read([...whole].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
  });
});

test("characters that end lines elsewhere are part of the data", async () => {
  const text = "a\u2028b\u2029c\u0085d\u000be\u000cf";

  expect(await read([bytes(`data: ${text}\n\n`)])).toEqual([text]);
});

test("an event that was cut off is none", async () => {
  expect(await read([bytes("data: whole\n\ndata: half")])).toEqual(["whole"]);
});

test("a byte order mark is not part of the first event", async () => {
  expect(await read([bytes("\ufeffdata: a\n\n")])).toEqual(["a"]);
});

test("whoever stops reading lets the connection go", async () => {
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (stream) => stream.enqueue(bytes("data: a\n\n")),
    cancel: () => void (isCancelled = true),
  });

  for await (const data of readEvents(body)) {
    if (data === "a") break;
  }

  expect(isCancelled).toBe(true);
});
