/** The messages and events of a WebSocket. */

import { toJson } from "./json";
import { parseFrame, type ClientMessage } from "./protocol";
import type { Transport, TransportListener } from "./transport";

const isOpen = 1;

export class SocketTransport implements Transport {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket, listener: TransportListener) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => listener.onFrame(parseFrame(data));
    socket.onclose = ({ code, reason }) => listener.onEnd({ code, reason, retryAfterMs: null });
  }

  send(message: ClientMessage): boolean {
    if (this.#socket.readyState !== isOpen) return false;
    this.#socket.send(toJson(message));
    return true;
  }

  close(): void {
    this.#socket.onmessage = null;
    this.#socket.onclose = null;
    this.#socket.close();
  }
}
