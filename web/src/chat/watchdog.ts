/**
 * Notices that nothing is heard of an answer that should be running, and has somebody ask after it.
 *
 * What ends an answer can be lost between the server and this page while the connection is well. The
 * waits only ever grow: each question makes the server read the answer to this page once more, and
 * one that comes in fits must not pile these up.
 */

const firstWaitMs = 10_000;
const maxWaitMs = 300_000;

export class Watchdog {
  readonly #ask: () => boolean;
  #waitMs = firstWaitMs;
  #hasHeard = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `ask` tells whether somebody could be asked. */
  constructor(ask: () => boolean) {
    this.#ask = ask;
  }

  heard(): void {
    this.#hasHeard = true;
  }

  start(): void {
    this.#timer ??= this.#wait();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(): ReturnType<typeof setTimeout> {
    this.#hasHeard = false;
    return setTimeout(() => {
      if (!this.#hasHeard && this.#ask()) this.#waitMs = Math.min(maxWaitMs, 2 * this.#waitMs);
      this.#timer = this.#wait();
    }, this.#waitMs);
  }
}
