/** Server-sent events out of the body of an HTTP reply, as the bytes come in. */

import { createParser } from "eventsource-parser";

/** Yield the data of each event; null for a comment, by which a silent server shows that it lives. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<string | null, void> {
  const arrived: (string | null)[] = [];
  const parser = createParser({
    onEvent: ({ data }) => arrived.push(data),
    onComment: () => arrived.push(null),
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* arrived.splice(0);
    }
  } finally {
    // Lets the connection go; a body that broke has let it go already.
    reader.cancel().catch(() => undefined);
  }
}
