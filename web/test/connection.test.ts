import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Connection, retryDelayMs } from "../src/wire/connection";
import { FakeSocket, fakeBrowser } from "./fakes";

let sockets: FakeSocket[];
let numLive: number;
let connection: Connection;

beforeEach(() => {
  fakeBrowser();
  vi.spyOn(Math, "random").mockReturnValue(0);
  sockets = [];
  numLive = 0;
  const open = () => {
    sockets.push(new FakeSocket());
    return sockets.at(-1) as unknown as WebSocket;
  };
  connection = new Connection(open, { onLive: () => (numLive += 1), onEvent: () => undefined });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const last = () => sockets.at(-1)!;

describe("a connection", () => {
  test("is live with the server's first frame, not before", () => {
    connection.connect();
    last().readyState = 1;
    const before = connection.state.value.kind;

    last().accept();

    expect(before).toBe("connecting");
    expect(connection.state.value.kind).toBe("live");
    expect(numLive).toBe(1);
  });

  test("sends nothing while nobody would receive it", () => {
    connection.connect();

    expect(connection.send({ type: "chatserve:ping", t: 0 })).toBe(false);
    expect(last().sent).toEqual([]);
  });

  test("reconnects after a drop and tells so again", () => {
    connection.connect();
    last().accept();

    last().drop();
    const waiting = connection.state.value;
    vi.advanceTimersByTime(250);
    last().accept();

    expect(waiting).toEqual({ kind: "reconnecting", retryAtMs: 250 });
    expect(sockets).toHaveLength(2);
    expect(numLive).toBe(2);
  });

  test("waits longer after each failure and begins anew after a success", () => {
    connection.connect();
    const delays: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      if (attempt === 6) last().accept();
      last().drop();
      const state = connection.state.value;
      if (state.kind === "reconnecting") delays.push(state.retryAtMs - Date.now());
      vi.advanceTimersByTime(delays.at(-1) ?? 0);
    }

    expect(delays).toEqual([250, 500, 1000, 2000, 4000, 4000, 250]);
  });

  test.each([1008, 4401, 4403])("does not come back after close code %i", (code) => {
    connection.connect();
    last().accept();

    last().drop(code, "origin not allowed");
    vi.advanceTimersByTime(60_000);

    expect(connection.state.value).toEqual({ kind: "refused", reason: "origin not allowed" });
    expect(sockets).toHaveLength(1);
  });

  test("leaves a draining server at once", () => {
    connection.connect();
    last().accept();

    last().receive({ type: "chatserve:goaway", deadline_ms: 1000, reason: "drain" });

    expect(connection.state.value.kind).toBe("reconnecting");
    expect(sockets[0]!.readyState).toBe(3);
  });

  test("says nothing of a socket that it has left", () => {
    connection.connect();
    const left = last();
    left.accept();
    connection.goOffline();

    left.drop();

    expect(connection.state.value.kind).toBe("offline");
  });

  test("is lost after ten seconds without a server, and found with its first frame", () => {
    connection.connect();
    last().accept();
    last().drop();
    const observed: boolean[] = [];
    for (let second = 0; second < 12; second += 1) {
      vi.advanceTimersByTime(1_000);
      if (connection.state.value.kind === "connecting") last().drop();
      if (second === 8 || second === 11) observed.push(connection.isLost.value);
    }

    connection.wake();
    last().accept();

    expect(observed).toEqual([false, true]);
    expect(connection.isLost.value).toBe(false);
  });

  test("that comes back soon is never called lost", () => {
    connection.connect();
    last().drop();
    vi.advanceTimersByTime(250);
    last().accept();

    vi.advanceTimersByTime(15_000);

    expect(connection.isLost.value).toBe(false);
  });

  test("knows the largest message from the first frame", () => {
    connection.connect();

    last().receive({ type: "chatserve:connection.opened", limits: { max_message_bytes: 2048 } });

    expect(connection.maxMessageBytes.value).toBe(2048);
  });

  test("gives up an attempt that gets no answer", () => {
    connection.connect();

    vi.advanceTimersByTime(10_000);

    expect(connection.state.value.kind).toBe("reconnecting");
  });
});

describe("the heartbeat", () => {
  test("pings a silent server and leaves it when it stays silent", () => {
    connection.connect();
    last().accept();

    vi.advanceTimersByTime(10_000);
    const pings = last().sent.length;
    vi.advanceTimersByTime(20_000);

    expect(pings).toBe(1);
    expect(connection.state.value.kind).toBe("reconnecting");
  });

  test("keeps a server that answers", () => {
    connection.connect();
    last().accept();

    for (let minute = 0; minute < 10; minute += 1) {
      vi.advanceTimersByTime(20_000);
      last().receive({ type: "chatserve:pong" });
    }

    expect(connection.state.value.kind).toBe("live");
    expect(sockets).toHaveLength(1);
  });

  test("finds out soon after a sleep whether the socket survived it", () => {
    connection.connect();
    last().accept();
    vi.setSystemTime(600_000);

    connection.wake();
    vi.advanceTimersByTime(5_000);

    expect(connection.state.value.kind).toBe("reconnecting");
  });

  test("keeps a socket that survived a sleep", () => {
    connection.connect();
    last().accept();
    vi.setSystemTime(600_000);

    connection.wake();
    last().receive({ type: "chatserve:pong" });
    vi.advanceTimersByTime(5_000);

    expect(connection.state.value.kind).toBe("live");
  });

  test("waking skips the rest of the backoff", () => {
    connection.connect();
    last().drop();

    connection.wake();

    expect(sockets).toHaveLength(2);
  });
});

test("a retry waits between half and all of a doubling ceiling of 8 s", () => {
  expect([0, 1, 2, 3, 4, 5].map((attempt) => retryDelayMs(attempt, 0))).toEqual([
    250, 500, 1000, 2000, 4000, 4000,
  ]);
  expect(retryDelayMs(9, 0.999)).toBeLessThanOrEqual(8000);
});
