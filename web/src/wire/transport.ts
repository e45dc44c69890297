/**
 * One way to the gateway, from its opening to its end.
 *
 * There are two: a WebSocket, and HTTP with event streams where something in between lets no
 * WebSocket through. Both take the same messages and bring the same events; who holds one need not
 * know which it is. Both end with a close code of the WebSocket protocol.
 */

import type { ClientMessage, ServerEvent } from "./protocol";

export interface Transport {
  /** Send a message; false when nobody would receive it. */
  send(message: ClientMessage): boolean;
  /** End it from this side. It says nothing from then on. */
  close(): void;
}

export interface TransportListener {
  /** The server is there; null: it said so by something that is no event. */
  onFrame(event: ServerEvent | null): void;
  /** It ended from the other side. */
  onEnd(end: TransportEnd): void;
}

export interface TransportEnd {
  code: number;
  reason: string;
  /** How long the server asks to be left alone. */
  retryAfterMs: number | null;
}

/** The end of a connection that broke; nobody sends this code. */
export const broken: TransportEnd = { code: 1006, reason: "", retryAfterMs: null };
