/**
 * Whether the other side is still there: asks for a frame now and then, and tells when none comes.
 *
 * Owns the timer. The first limit is that of the opening; each period after it begins with a ping.
 */

const periodMs = 20_000;

export class Heartbeat {
  readonly #ping: () => void;
  readonly #onSilence: () => void;
  /** Whether a frame came since the last time one was asked for. */
  #hasHeard = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ping: () => void, onSilence: () => void) {
    this.#ping = ping;
    this.#onSilence = onSilence;
  }

  heard(): void {
    this.#hasHeard = true;
  }

  /** Wait for a frame this long; one that comes in time opens the next period. */
  expectFrame(limitMs: number): void {
    this.stop();
    this.#hasHeard = false;
    this.#timer = setTimeout(() => {
      if (this.#hasHeard) this.ask(periodMs);
      else this.#onSilence();
    }, limitMs);
  }

  /** Ask for a frame, and wait for it this long. */
  ask(limitMs: number): void {
    this.#ping();
    this.expectFrame(limitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
