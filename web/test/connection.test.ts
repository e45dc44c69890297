import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { watchForKeyNeeded } from "../src/wire/api";
import { Connection } from "../src/wire/connection";
import { FakeSocket, fakeBrowser } from "./fakes";

let sockets: FakeSocket[];
let numLive: number;
let connection: Connection;
/** What `GET v1/models` is answered by; null: nobody answers. */
let reply: (() => Response) | null;
let onKeyNeeded: ReturnType<typeof vi.fn<() => void>>;

beforeEach(() => {
  fakeBrowser();
  vi.spyOn(Math, "random").mockReturnValue(0);
  sockets = [];
  numLive = 0;
  const open = () => {
    sockets.push(new FakeSocket());
    return sockets.at(-1) as unknown as WebSocket;
  };
  reply = null;
  onKeyNeeded = vi.fn<() => void>();
  watchForKeyNeeded(onKeyNeeded);
  vi.stubGlobal("fetch", async () => {
    if (reply === null) throw new TypeError("Failed to fetch");
    return reply();
  });
  connection = new Connection(open, {
    onLive: () => (numLive += 1),
    onEvent: () => undefined,
  });
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

    expect(waiting).toEqual({ kind: "reconnecting", retryAtMs: 250, reason: "lost" });
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

  test.each([1008, 4401])("does not come back after close code %i", (code) => {
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

    vi.advanceTimersByTime(5_000);

    expect(connection.state.value.kind).toBe("reconnecting");
  });

  test("of too many comes back slowly and says why", () => {
    connection.connect();
    last().drop(4429, "this key has 8 connections open");

    expect(connection.state.value).toEqual({
      kind: "reconnecting",
      retryAtMs: 30_000,
      reason: "crowded",
    });
  });

  test("is not called lost while the server asks for patience", () => {
    connection.connect();
    last().accept();
    last().drop(1013, "the store cannot be reached");
    const state = connection.state.value;
    vi.advanceTimersByTime(1_999);
    const numSockets = sockets.length;
    vi.advanceTimersByTime(1);

    expect(state).toMatchObject({ kind: "reconnecting", reason: "busy" });
    expect(numSockets).toBe(1);
    expect(sockets).toHaveLength(2);
    expect(connection.isLost.value).toBe(false);
  });
});

describe("a socket that does not open", () => {
  const settle = () => vi.advanceTimersByTimeAsync(0);

  function refuse(status: number, headers: Record<string, string> = {}): void {
    const error = { code: "c", message: "No." };
    reply = () => Response.json({ error }, { status, headers });
  }

  test.each([401, 403])("for the reason of status %i is not tried again", async (status) => {
    refuse(status);
    connection.connect();
    last().drop();
    await vi.advanceTimersByTimeAsync(60_000);

    expect(connection.state.value).toEqual({ kind: "refused", reason: "No." });
    expect(sockets).toHaveLength(1);
  });

  test.each([429, 503])("for the reason of status %i waits as long as it is told", async (status) => {
    refuse(status, { "Retry-After": "45" });
    connection.connect();
    last().drop();
    await settle();

    expect(connection.state.value).toMatchObject({ kind: "reconnecting", retryAtMs: 45_000 });
    await vi.advanceTimersByTimeAsync(44_999);
    expect(sockets).toHaveLength(1);
  });

  test("is tried again while nobody answers HTTP either", async () => {
    connection.connect();
    for (const delayMs of [250, 500, 1_000, 2_000, 4_000, 4_000]) {
      last().drop();
      await vi.advanceTimersByTimeAsync(delayMs);
    }

    expect(connection.state.value.kind).toBe("connecting");
    expect(sockets).toHaveLength(7);
  });

  test("asks for a login when a live one ends because its key was revoked", async () => {
    connection.connect();
    last().accept();
    refuse(401);

    last().drop(1008, "this access has ended");
    await settle();

    expect(connection.state.value).toEqual({ kind: "refused", reason: "this access has ended" });
    expect(onKeyNeeded).toHaveBeenCalledOnce();
  });
});

describe("where no WebSocket gets through", () => {
  beforeEach(() => {
    reply = () => Response.json({ data: [], has_more: false });
  });

  async function fallBack(): Promise<void> {
    connection.connect();
    last().drop();
    await vi.advanceTimersByTimeAsync(250);
    last().drop();
    await vi.advanceTimersByTimeAsync(0);
  }

  test("HTTP takes over", async () => {
    await fallBack();

    expect(connection.state.value).toEqual({ kind: "live", via: "http" });
    expect(numLive).toBe(1);
  });

  test("HTTP takes over from a proxy that keeps silent, too", async () => {
    connection.connect();
    await vi.advanceTimersByTimeAsync(5_000);

    expect(connection.state.value).toEqual({ kind: "live", via: "http" });
  });

  test("a socket that the server itself has closed is no reason", async () => {
    connection.connect();
    last().drop(4429, "too many");
    await vi.advanceTimersByTimeAsync(30_000);
    last().drop(4429, "too many");
    await vi.advanceTimersByTimeAsync(0);

    expect(connection.state.value).toMatchObject({ kind: "reconnecting", reason: "crowded" });
  });

  test("one failure alone is no reason", async () => {
    connection.connect();
    last().drop();
    await vi.advanceTimersByTimeAsync(250);
    last().accept();

    expect(connection.state.value).toEqual({ kind: "live", via: "socket" });
  });

  test("HTTP stays as long as the server replies to it", async () => {
    await fallBack();
    await vi.advanceTimersByTimeAsync(100_000);

    expect(connection.state.value.kind).toBe("live");

    reply = null;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(connection.state.value.kind).toBe("reconnecting");
  });

  test.each([
    ["after a while", () => vi.advanceTimersByTimeAsync(120_000)],
    ["on waking", async () => connection.wake()],
  ])("a socket is tried beside HTTP %s, and takes over with its first frame", async (_when, pass) => {
    await fallBack();
    const numTried = sockets.length;

    await pass();
    const meanwhile = connection.state.value;
    last().accept();
    await vi.advanceTimersByTimeAsync(4_000);

    expect(sockets).toHaveLength(numTried + 1);
    expect(meanwhile).toEqual({ kind: "live", via: "http" });
    expect(connection.state.value).toEqual({ kind: "live", via: "socket" });
    expect(numLive).toBe(2);
  });

  test("a socket that is tried in vain disturbs nothing", async () => {
    await fallBack();
    connection.wake();

    last().drop();
    await vi.advanceTimersByTimeAsync(1_000);

    expect(connection.state.value).toEqual({ kind: "live", via: "http" });
    expect(numLive).toBe(1);
  });
});

describe("the heartbeat", () => {
  test("pings a silent server and leaves it when it stays silent", () => {
    connection.connect();
    last().accept();

    vi.advanceTimersByTime(5_000);
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
