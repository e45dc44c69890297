/**
 * A transport that has to be loaded before it opens.
 *
 * Owns the wait for it. A load that fails is an end like any other: whoever connects tries again.
 */

import type { ClientMessage } from "./protocol";
import { broken, type Transport, type TransportListener } from "./transport";

export class LaterTransport implements Transport {
  #transport: Transport | null = null;
  #isClosed = false;

  constructor(open: (listener: TransportListener) => Promise<Transport>, listener: TransportListener) {
    open(listener).then(
      (transport) => {
        this.#transport = transport;
        if (this.#isClosed) transport.close();
      },
      () => {
        if (!this.#isClosed) listener.onEnd(broken);
      },
    );
  }

  send(message: ClientMessage): boolean {
    return this.#transport?.send(message) ?? false;
  }

  close(): void {
    this.#isClosed = true;
    this.#transport?.close();
  }
}
