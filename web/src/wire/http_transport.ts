/**
 * The messages and events of the socket, over HTTP: each answer is a stream of its own.
 *
 * Owns the open streams. Nothing keeps HTTP open between two answers, so a request stands for the
 * server's first frame and for each pong. One stream that breaks ends the whole transport: what
 * broke it concerns the others too, and whoever follows them resumes them on the next one.
 */

import { cancelAnswer, streamAnswer, streamNewAnswer } from "./answer_stream";
import { ApiError, listModels } from "./api";
import { readEvents } from "./event_stream";
import { endOf } from "./patience";
import { isTerminal, parseFrame, type ClientMessage, type ServerEvent } from "./protocol";
import { broken, type Transport, type TransportEnd, type TransportListener } from "./transport";

/** The server fills a silence with a comment every 15 s. */
const silenceLimitMs = 45_000;

interface Source {
  open(signal: AbortSignal): Promise<Response>;
  /** What a refusal means; null: that this answer has failed, and nothing else. */
  endOf(error: ApiError): TransportEnd | null;
}

export class HttpTransport implements Transport {
  readonly #listener: TransportListener;
  readonly #streams = new Map<string, AbortController>();
  #hasEnded = false;

  constructor(listener: TransportListener) {
    this.#listener = listener;
    void this.#ask("chatserve:connection.opened");
  }

  send(message: ClientMessage): boolean {
    if (this.#hasEnded) return false;
    switch (message.type) {
      case "response.create":
        void this.#follow(message.stream_id, {
          open: (signal) => streamNewAnswer(message, signal),
          endOf: endOfCreate,
        });
        break;
      case "chatserve:response.resume":
        void this.#follow(message.stream_id, {
          open: (signal) => streamAnswer(message.response_id, message.starting_after, signal),
          endOf,
        });
        break;
      case "response.cancel":
        void this.#cancel(message.response_id);
        break;
      case "chatserve:ping":
        void this.#ask("chatserve:pong");
    }
    return true;
  }

  close(): void {
    this.#hasEnded = true;
    for (const stream of this.#streams.values()) stream.abort();
    this.#streams.clear();
  }

  /** Answer for the server that it is there, once it has replied to something. */
  async #ask(type: "chatserve:connection.opened" | "chatserve:pong"): Promise<void> {
    try {
      await listModels();
      if (!this.#hasEnded) this.#listener.onFrame({ type });
    } catch (error) {
      this.#end((error instanceof ApiError && endOf(error)) || broken);
    }
  }

  /** HTTP has no lanes: a cancel without an id comes again when the answer has one. */
  async #cancel(responseId: string | undefined): Promise<void> {
    if (responseId === undefined) return;
    try {
      await cancelAnswer(responseId);
    } catch (error) {
      const end = error instanceof ApiError ? endOf(error) : broken;
      if (end !== null) this.#end(end);
    }
  }

  async #follow(lane: string, source: Source): Promise<void> {
    this.#streams.get(lane)?.abort();
    const control = new AbortController();
    this.#streams.set(lane, control);
    try {
      const { body } = await source.open(control.signal);
      const hasAll = body !== null && (await this.#read(lane, body, control.signal));
      if (!hasAll && !control.signal.aborted) this.#end(broken);
    } catch (error) {
      if (!control.signal.aborted) this.#fail(lane, error, source.endOf);
    }
    if (this.#streams.get(lane) === control) this.#streams.delete(lane);
  }

  /** Hand on the events of a stream; return whether it came to the answer's end. */
  async #read(
    lane: string,
    body: ReadableStream<Uint8Array>,
    signal: AbortSignal,
  ): Promise<boolean> {
    let silence = this.#watchSilence();
    try {
      for await (const data of readEvents(body)) {
        if (signal.aborted) return true;
        clearTimeout(silence);
        silence = this.#watchSilence();
        const event = data === null ? null : parseFrame(data);
        if (event?.type === "error" && event.error.code === "draining") return false;
        this.#listener.onFrame(event && onLane(event, lane));
        if (event !== null && isTerminal(event)) return true;
      }
      return false;
    } finally {
      clearTimeout(silence);
    }
  }

  #watchSilence(): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#end(broken), silenceLimitMs);
  }

  /** A refusal ends its answer; anything else, the way to the server. */
  #fail(lane: string, error: unknown, endFor: (error: ApiError) => TransportEnd | null): void {
    const end = error instanceof ApiError ? endFor(error) : broken;
    if (end !== null) {
      this.#end(end);
      return;
    }
    this.#listener.onFrame(errorFrame(error as ApiError, lane));
  }

  #end(end: TransportEnd): void {
    if (this.#hasEnded) return;
    this.close();
    this.#listener.onEnd(end);
  }
}

/** Return a refusal as a socket would bring it. */
function errorFrame({ status, code, message, retryAfterMs }: ApiError, lane: string): ServerEvent {
  const headers = retryAfterMs === null ? {} : { "retry-after": String(retryAfterMs / 1_000) };
  return { type: "error", stream_id: lane, status, error: { code, message, headers } };
}

function onLane(event: ServerEvent, lane: string): ServerEvent {
  return { ...event, stream_id: lane } as ServerEvent;
}

/** The same for a new answer, which has limits and needs of its own. */
function endOfCreate(error: ApiError): TransportEnd | null {
  const isItsOwn = [403, 429, 500, 503].includes(error.status) && error.code !== "draining";
  return isItsOwn ? null : endOf(error);
}
