/**
 * One connection to the gateway that outlives its transports.
 *
 *     connecting → live → reconnecting (backoff) → connecting …
 *                       ↘ offline (until the browser is online again)
 *                       ↘ refused (an end that forbids another try)
 *
 * Owns the transport and the retry timer. Knows no answers: whoever follows one resumes it in
 * `onLive`. "Live" begins with the server's first frame, since an open socket may be a proxy's.
 *
 * A browser does not tell why a WebSocket failed to open, so a request over HTTP asks: it brings
 * the refusal, or shows that something in between lets no WebSocket through. Then HTTP takes over,
 * and a WebSocket is tried beside it now and then, which takes over with its first frame.
 */

import { signal, type ReadonlySignal } from "@preact/signals";

import { ApiError, listModels } from "./api";
import { Heartbeat } from "./heartbeat";
import { LaterTransport } from "./later_transport";
import { endOf, isRefusal, leastDelayMs, retryDelayMs, retryReason, type RetryReason } from "./patience";
import type { ClientMessage, ServerEvent } from "./protocol";
import { SocketTransport } from "./socket_transport";
import { broken, type Transport, type TransportEnd, type TransportListener } from "./transport";

const probeLimitMs = 5_000;
const openLimitMs = 5_000;
/**
 * So many sockets in a row that do not open while HTTP works are no coincidence. One that stays
 * silent counts as so many: the reader has waited long enough.
 */
const blockedAfter = 2;
const upgradeEveryMs = 120_000;
/** A server that is started anew is back before this; later, the reader should look after it. */
const lostAfterMs = 10_000;

type Via = "socket" | "http";

/** Few need it, so it is no part of the page as it is first loaded. */
async function openHttp(listener: TransportListener): Promise<Transport> {
  const { HttpTransport } = await import("./http_transport");
  return new HttpTransport(listener);
}

export type ConnectionState =
  | { kind: "connecting" }
  | { kind: "live"; via: Via }
  | { kind: "reconnecting"; retryAtMs: number; reason: RetryReason }
  | { kind: "offline" }
  | { kind: "refused"; reason: string };

export interface ConnectionListener {
  onLive(): void;
  onEvent(event: ServerEvent): void;
}

export class Connection {
  readonly state: ReadonlySignal<ConnectionState>;
  /** Whether the server has been away for so long that it may not come back by itself. */
  readonly isLost = signal(false);
  /** The largest frame the server takes, as it said in its first one. */
  readonly maxMessageBytes = signal<number | null>(null);
  readonly #state = signal<ConnectionState>({ kind: "connecting" });
  readonly #openSocket: () => WebSocket;
  readonly #listener: ConnectionListener;
  readonly #heartbeat = new Heartbeat(
    () => this.send({ type: "chatserve:ping", t: Date.now() }),
    () => this.#moveOn(broken, { numSigns: blockedAfter }),
  );
  #via: Via = "socket";
  #transport: Transport | null = null;
  /** A socket that is tried while HTTP is in use. */
  #candidate: Transport | null = null;
  #attempt = 0;
  #numSignsOfBlock = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #upgradeTimer: ReturnType<typeof setTimeout> | undefined;
  #lostTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(openSocket: () => WebSocket, listener: ConnectionListener) {
    this.#openSocket = openSocket;
    this.#listener = listener;
    this.state = this.#state;
  }

  get isLive(): boolean {
    return this.#state.value.kind === "live";
  }

  /** Connect now, whatever the backoff says; a connection that is there is kept. */
  connect(): void {
    if (this.#transport !== null) return;
    clearTimeout(this.#retryTimer);
    this.#state.value = { kind: "connecting" };
    this.#via = this.#numSignsOfBlock >= blockedAfter ? "http" : "socket";
    this.#transport = this.#open(this.#via);
    this.#heartbeat.expectFrame(openLimitMs);
  }

  /** Send a message; false when nobody would receive it. */
  send(message: ClientMessage): boolean {
    return this.isLive && (this.#transport?.send(message) ?? false);
  }

  /** Make sure of the connection after a time in which timers may have stood still. */
  wake(): void {
    if (this.#transport === null) {
      this.connect();
      return;
    }
    this.#heartbeat.ask(probeLimitMs);
    if (this.isLive && this.#via === "http") this.#tryUpgrade();
  }

  /** Stop trying until `wake`; the browser has no network. */
  goOffline(): void {
    this.#drop();
    clearTimeout(this.#retryTimer);
    this.#endLoss();
    this.#state.value = { kind: "offline" };
  }

  #open(via: Via): Transport {
    const listener = {
      onFrame: (event: ServerEvent | null) => this.#onFrame(transport, event),
      onEnd: (end: TransportEnd) => this.#onEnd(transport, end),
    };
    const transport: Transport =
      via === "http"
        ? new LaterTransport(openHttp, listener)
        : new SocketTransport(this.#openSocket(), listener);
    return transport;
  }

  #onFrame(transport: Transport, event: ServerEvent | null): void {
    if (transport === this.#candidate) this.#upgrade(transport);
    if (transport !== this.#transport) return;
    this.#heartbeat.heard();
    if (!this.isLive) this.#becomeLive();
    if (event === null) return;
    if (event.type === "chatserve:connection.opened") {
      this.maxMessageBytes.value = event.limits?.max_message_bytes ?? null;
    }
    if (event.type === "chatserve:goaway") this.#moveOn(broken);
    else this.#listener.onEvent(event);
  }

  #becomeLive(): void {
    this.#attempt = 0;
    this.#endLoss();
    if (this.#via === "socket") this.#numSignsOfBlock = 0;
    else this.#upgradeTimer = setTimeout(() => this.#tryUpgrade(), upgradeEveryMs);
    this.#state.value = { kind: "live", via: this.#via };
    this.#listener.onLive();
  }

  #onEnd(transport: Transport, end: TransportEnd): void {
    if (transport === this.#candidate) this.#candidate = null;
    if (transport !== this.#transport) return;
    if (isRefusal(end)) this.#refuse(end);
    else this.#moveOn(end);
  }

  /** Leave a server that ended, drains or is silent, and let the followers resume elsewhere. */
  #moveOn(end: TransportEnd, { numSigns } = { numSigns: 1 }): void {
    const hasOpened = this.isLive;
    this.#drop();
    this.#retry(end);
    // A close code of the server's has come through.
    const isUnexplained = end.code === broken.code;
    if (!hasOpened && this.#via === "socket") void this.#explain(isUnexplained ? numSigns : 0);
  }

  #refuse({ code, reason }: TransportEnd): void {
    this.#drop();
    this.#endLoss();
    this.#state.value = { kind: "refused", reason: reason || `close code ${code}` };
    void this.#explain(0);
  }

  #retry(end: TransportEnd): void {
    clearTimeout(this.#retryTimer);
    const backoffMs = retryDelayMs(this.#attempt, Math.random());
    const delayMs = Math.max(backoffMs, leastDelayMs(end));
    const reason = retryReason(end);
    this.#attempt += 1;
    if (reason === "lost") this.#beginLoss();
    else this.#endLoss();
    this.#state.value = { kind: "reconnecting", retryAtMs: Date.now() + delayMs, reason };
    this.#retryTimer = setTimeout(() => this.connect(), delayMs);
  }

  /** Ask over HTTP why no socket is there; where HTTP works, that is so many signs of a block. */
  async #explain(numSigns: number): Promise<void> {
    try {
      await listModels();
      this.#noteBlocked(numSigns);
    } catch (error) {
      if (error instanceof ApiError) this.#noteRefusal(error);
    }
  }

  #noteBlocked(numSigns: number): void {
    const { kind } = this.#state.value;
    if (kind === "live") return;
    this.#numSignsOfBlock += numSigns;
    if (kind === "reconnecting" && this.#numSignsOfBlock >= blockedAfter) this.connect();
  }

  #noteRefusal(error: ApiError): void {
    const end = endOf(error);
    const isWaiting = this.#state.value.kind === "reconnecting";
    if (end === null || !isWaiting) return;
    if (isRefusal(end)) {
      clearTimeout(this.#retryTimer);
      this.#endLoss();
      this.#state.value = { kind: "refused", reason: end.reason };
    } else if (leastDelayMs(end) > 0) {
      this.#retry(end);
    }
  }

  #tryUpgrade(): void {
    clearTimeout(this.#upgradeTimer);
    this.#upgradeTimer = setTimeout(() => this.#tryUpgrade(), upgradeEveryMs);
    this.#candidate?.close();
    this.#candidate = this.#open("socket");
  }

  #upgrade(candidate: Transport): void {
    this.#candidate = null;
    this.#drop();
    this.#via = "socket";
    this.#transport = candidate;
    this.#heartbeat.expectFrame(probeLimitMs);
    this.#becomeLive();
  }

  #beginLoss(): void {
    this.#lostTimer ??= setTimeout(() => (this.isLost.value = true), lostAfterMs);
  }

  #endLoss(): void {
    clearTimeout(this.#lostTimer);
    this.#lostTimer = undefined;
    this.isLost.value = false;
  }

  #drop(): void {
    this.#heartbeat.stop();
    clearTimeout(this.#upgradeTimer);
    this.#candidate?.close();
    this.#candidate = null;
    this.#transport?.close();
    this.#transport = null;
  }
}
