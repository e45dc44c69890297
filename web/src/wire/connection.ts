/**
 * One WebSocket to the gateway that outlives its sockets.
 *
 *     connecting → live → reconnecting (backoff) → connecting …
 *                       ↘ offline (until the browser is online again)
 *                       ↘ refused (a close code that forbids another try)
 *
 * Owns the socket, the retry timer and the heartbeat. Knows no answers: whoever follows one
 * resumes it in `onLive`. "Live" begins with the server's first frame, since an open socket may
 * be a proxy's.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

import { parseFrame, type ClientMessage, type ServerEvent } from "./protocol";

const firstRetryMs = 500;
const maxRetryMs = 8_000;
const heartbeatMs = 20_000;
const probeLimitMs = 5_000;
const openLimitMs = 10_000;
/** A server that is started anew is back before this; later, the reader should look after it. */
const lostAfterMs = 10_000;
const refusals = new Set([1008, 4401, 4403]);

export type ConnectionState =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "reconnecting"; retryAtMs: number }
  | { kind: "offline" }
  | { kind: "refused"; reason: string };

export interface ConnectionListener {
  onLive(): void;
  onEvent(event: ServerEvent, atMs: number): void;
}

/** Return how long to wait before try number `attempt` (from 0); `random` is in [0, 1). */
export function retryDelayMs(attempt: number, random: number): number {
  const ceiling = Math.min(maxRetryMs, firstRetryMs * 2 ** attempt);
  return Math.round(ceiling * (0.5 + random / 2));
}

export class Connection {
  readonly state: ReadonlySignal<ConnectionState>;
  /** Whether the server has been away for so long that it may not come back by itself. */
  readonly isLost = signal(false);
  /** The largest frame the server takes, as it said in its first one. */
  readonly maxMessageBytes = signal<number | null>(null);
  readonly #state = signal<ConnectionState>({ kind: "connecting" });
  readonly #open: () => WebSocket;
  readonly #listener: ConnectionListener;
  #socket: WebSocket | null = null;
  #attempt = 0;
  /** Whether a frame came since the last time the server was asked for one. */
  #hasHeard = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #heartbeatTimer: ReturnType<typeof setTimeout> | undefined;
  #lostTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(open: () => WebSocket, listener: ConnectionListener) {
    this.#open = open;
    this.#listener = listener;
    this.state = this.#state;
  }

  get isLive(): boolean {
    return this.#state.value.kind === "live";
  }

  /** Open a socket now, whatever the backoff says; an open one is kept. */
  connect(): void {
    if (this.#socket !== null) return;
    clearTimeout(this.#retryTimer);
    this.#state.value = { kind: "connecting" };
    const socket = this.#open();
    this.#socket = socket;
    this.#expectFrame(openLimitMs);
    socket.onmessage = (message) => this.#onFrame(message.data);
    socket.onclose = (closed) => this.#onClose(socket, closed.code, closed.reason);
  }

  /** Send a message; false when nobody would receive it. */
  send(message: ClientMessage): boolean {
    if (!this.isLive || this.#socket?.readyState !== 1) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Make sure of the connection after a time in which timers may have stood still. */
  wake(): void {
    if (this.#socket === null) {
      this.connect();
      return;
    }
    this.#ping();
    this.#expectFrame(probeLimitMs);
  }

  /** Stop trying until `wake`; the browser has no network. */
  goOffline(): void {
    this.#drop();
    clearTimeout(this.#retryTimer);
    this.#endLoss();
    this.#state.value = { kind: "offline" };
  }

  #onFrame(data: unknown): void {
    this.#hasHeard = true;
    if (!this.isLive) this.#becomeLive();
    const event = parseFrame(data);
    if (event === null) return;
    if (event.type === "chatserve:connection.opened") {
      this.maxMessageBytes.value = event.limits?.max_message_bytes ?? null;
    }
    if (event.type === "chatserve:goaway") this.#moveOn();
    else this.#listener.onEvent(event, Date.now());
  }

  #becomeLive(): void {
    this.#attempt = 0;
    this.#endLoss();
    this.#state.value = { kind: "live" };
    this.#listener.onLive();
  }

  /** Leave a server that drains or is silent, and let the followers resume elsewhere. */
  #moveOn(): void {
    this.#drop();
    this.#retry();
  }

  #onClose(socket: WebSocket, code: number, reason: string): void {
    if (socket !== this.#socket) return;
    this.#drop();
    if (refusals.has(code)) {
      this.#endLoss();
      this.#state.value = { kind: "refused", reason: reason || `close code ${code}` };
    } else {
      this.#retry();
    }
  }

  #retry(): void {
    const delayMs = retryDelayMs(this.#attempt, Math.random());
    this.#attempt += 1;
    this.#lostTimer ??= setTimeout(() => (this.isLost.value = true), lostAfterMs);
    this.#state.value = { kind: "reconnecting", retryAtMs: Date.now() + delayMs };
    this.#retryTimer = setTimeout(() => this.connect(), delayMs);
  }

  #endLoss(): void {
    clearTimeout(this.#lostTimer);
    this.#lostTimer = undefined;
    this.isLost.value = false;
  }

  /** Leave the socket unless a frame comes in time; one that does, opens the next period. */
  #expectFrame(limitMs: number): void {
    this.#hasHeard = false;
    clearTimeout(this.#heartbeatTimer);
    this.#heartbeatTimer = setTimeout(() => {
      if (!this.#hasHeard) {
        this.#moveOn();
        return;
      }
      this.#ping();
      this.#expectFrame(heartbeatMs);
    }, limitMs);
  }

  #ping(): void {
    this.send({ type: "chatserve:ping", t: Date.now() });
  }

  #drop(): void {
    clearTimeout(this.#heartbeatTimer);
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close();
  }
}
