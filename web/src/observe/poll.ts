/**
 * One reading of the service, taken again and again while somebody looks.
 *
 * Owns the last reading, why the last try failed, and when the next one is due. It rests while the
 * tab is hidden, waits for a reply before it asks again, and asks more and more rarely while
 * readings fail. It does not know what is read.
 */

import { signal } from "@preact/signals";

import { ApiError } from "../wire/api";

const maxDelayMs = 15_000;

export interface Reading<T> {
  value: T;
  /** When it came, by the browser's clock. */
  atMs: number;
}

export class Poll<T> {
  /** The last one that succeeded, also while later ones fail. */
  readonly reading = signal<Reading<T> | null>(null);
  readonly problem = signal<ApiError | null>(null);
  readonly #read: () => Promise<T>;
  readonly #intervalMs: number;
  #isOn = false;
  #isReading = false;
  #numFailures = 0;
  #beganMs = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(read: () => Promise<T>, intervalMs: number) {
    this.#read = read;
    this.#intervalMs = intervalMs;
  }

  start(): void {
    this.#isOn = true;
    document.addEventListener("visibilitychange", this.#onVisibility);
    this.#schedule(this.#intervalMs);
  }

  stop(): void {
    this.#isOn = false;
    document.removeEventListener("visibilitychange", this.#onVisibility);
    clearTimeout(this.#timer);
  }

  /** Ask now instead of waiting out the pause after a failure. */
  retry(): void {
    this.#schedule(this.#intervalMs);
  }

  readonly #onVisibility = () => this.#schedule(this.#intervalMs);

  /** Let the next reading begin so long after the last one began, or at once if that is past. */
  #schedule(pauseMs: number): void {
    clearTimeout(this.#timer);
    if (!this.#isOn || this.#isReading || document.hidden) return;
    const waitMs = Math.max(0, this.#beganMs + pauseMs - Date.now());
    this.#timer = setTimeout(() => void this.#take(), waitMs);
  }

  async #take(): Promise<void> {
    this.#isReading = true;
    this.#beganMs = Date.now();
    try {
      this.reading.value = { value: await this.#read(), atMs: Date.now() };
      this.problem.value = null;
      this.#numFailures = 0;
    } catch (error) {
      this.problem.value = toApiError(error);
      this.#numFailures += 1;
    } finally {
      this.#isReading = false;
    }
    this.#schedule(Math.min(this.#intervalMs * 2 ** this.#numFailures, maxDelayMs));
  }
}

function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, "unreadable", String(error));
}
