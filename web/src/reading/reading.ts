/**
 * Whether the transcript follows its end: the reader's will, and nothing else, decides.
 *
 *     following ── wheel up, keys up, finger down, scrollbar up, opens a detail ──▶ resting
 *     resting   ── reaches the bottom, sends a message, presses "latest" ──▶ following
 *
 * Layout that grows, shrinks or settles never ends the one or the other (what fits has no end to
 * follow), so an answer's end cannot make the page jump, and a reader further up is never pulled
 * down.
 */

import { signal } from "@preact/signals";

const bottomSlackPx = 4;
const upKeys = new Set(["ArrowUp", "PageUp", "Home"]);

/** The part of an element that following needs. */
export interface ScrollBox {
  scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
}

export class Reading {
  readonly isFollowing = signal(true);
  #touchY = 0;
  #lastTop = 0;
  #lastHeight = 0;

  onWheel(deltaY: number, box: ScrollBox): void {
    if (deltaY < 0 && box.scrollTop > 0) this.isFollowing.value = false;
    if (deltaY > 0 && isAtBottom(box)) this.isFollowing.value = true;
  }

  onTouchStart(y: number): void {
    this.#touchY = y;
  }

  onTouchMove(y: number, box: ScrollBox): void {
    if (y > this.#touchY && box.scrollTop > 0) this.isFollowing.value = false;
    this.#touchY = y;
  }

  onKey(key: string): void {
    if (upKeys.has(key)) this.isFollowing.value = false;
  }

  /**
   * A scroll tells where the reader is. Upwards in unchanged content it also tells their will;
   * the first pixels of a smooth scroll are still at the bottom and must not count as arriving.
   */
  onScroll(box: ScrollBox): void {
    const isUp = box.scrollTop < this.#lastTop;
    const isUnchanged = box.scrollHeight === this.#lastHeight;
    if (!isUp && isAtBottom(box)) this.isFollowing.value = true;
    else if (isUp && isUnchanged && !isAtBottom(box)) this.isFollowing.value = false;
    this.#remember(box);
  }

  /** Content or box changed its size: stay at the end if that is where the reader wants to be. */
  onResize(box: ScrollBox): void {
    if (box.scrollHeight <= box.clientHeight) this.isFollowing.value = true;
    if (this.isFollowing.value) box.scrollTop = box.scrollHeight;
    this.#remember(box);
  }

  /** The reader opens something further up, and means to read it. */
  rest(): void {
    this.isFollowing.value = false;
  }

  followNow(box: ScrollBox): void {
    this.isFollowing.value = true;
    this.onResize(box);
  }

  #remember(box: ScrollBox): void {
    this.#lastTop = box.scrollTop;
    this.#lastHeight = box.scrollHeight;
  }
}

function isAtBottom(box: ScrollBox): boolean {
  return box.scrollHeight - box.clientHeight - box.scrollTop <= bottomSlackPx;
}
