/**
 * Whether the transcript follows its end: the reader's will, and nothing else, decides.
 *
 *     following ── wheel up, keys up, finger down, scrollbar up, opens a detail ──▶ resting
 *     resting   ── reaches the bottom, sends a message, presses "latest" ──▶ following
 *
 * Layout that grows, shrinks or settles never ends the one or the other (what fits has no end to
 * follow), so an answer's end cannot make the page jump, and a reader further up is never pulled
 * down.
 *
 * The bottom moves away from a reader who is on the way there while an answer grows. They have
 * reached it when they come to where it was as they set out; a scrollbar is held for longer than
 * that can be asked of, and its end is as near to the bottom as a hand can aim.
 */

import { signal } from "@preact/signals";

const bottomSlackPx = 4;
/** What an answer may have grown by before the part of the browser that scrolls knows of it. */
const growthSlackPx = 48;
const upKeys = new Set(["ArrowUp", "PageUp", "Home"]);
const downKeys = new Set(["ArrowDown", "PageDown", "End", " "]);

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
  /** A scroll down that comes this far has come to the end; null: none is on its way. */
  #aim: number | null = null;
  #isHeld = false;

  onWheel(deltaY: number, box: ScrollBox): void {
    if (deltaY < 0) this.#leaveEnd(box.scrollTop > 0);
    if (deltaY > 0) this.#headForEnd(box);
    if (deltaY > 0 && isAtBottom(box)) this.isFollowing.value = true;
  }

  onTouchStart(y: number): void {
    this.#touchY = y;
  }

  onTouchMove(y: number, box: ScrollBox): void {
    if (y > this.#touchY) this.#leaveEnd(box.scrollTop > 0);
    if (y < this.#touchY) this.#headForEnd(box);
    this.#touchY = y;
  }

  onKey(key: string, box: ScrollBox): void {
    if (upKeys.has(key)) this.#leaveEnd(true);
    if (downKeys.has(key)) this.#headForEnd(box);
  }

  /** The scrollbar is taken hold of. */
  onHold(): void {
    this.#aim = null;
    this.#isHeld = true;
  }

  onRelease(): void {
    this.#isHeld = false;
  }

  /** What the reader set out for is reached, or given up. */
  onScrollEnd(): void {
    this.#aim = null;
  }

  /**
   * A scroll tells where the reader is. Upwards in unchanged content it also tells their will;
   * the first pixels of a smooth scroll are still at the bottom and must not count as arriving.
   */
  onScroll(box: ScrollBox): void {
    const isUp = box.scrollTop < this.#lastTop;
    const isDown = box.scrollTop > this.#lastTop;
    const isUnchanged = box.scrollHeight === this.#lastHeight;
    const hasArrived = isAtBottom(box) || (isDown && this.#isAtAim(box));
    if (!isUp && hasArrived) this.isFollowing.value = true;
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

  /** The box was moved for the reader, who looks at the same as before. */
  onMoved(box: ScrollBox): void {
    this.#remember(box);
  }

  #leaveEnd(hasRoom: boolean): void {
    this.#aim = null;
    this.#isHeld = false;
    if (hasRoom) this.isFollowing.value = false;
  }

  #headForEnd(box: ScrollBox): void {
    this.#isHeld = false;
    this.#aim = endOf(box) - growthSlackPx;
  }

  #isAtAim(box: ScrollBox): boolean {
    if (this.#isHeld) return box.scrollTop >= endOf(box) - growthSlackPx;
    return this.#aim !== null && box.scrollTop >= this.#aim;
  }

  #remember(box: ScrollBox): void {
    this.#lastTop = box.scrollTop;
    this.#lastHeight = box.scrollHeight;
  }
}

function isAtBottom(box: ScrollBox): boolean {
  return endOf(box) - box.scrollTop <= bottomSlackPx;
}

function endOf(box: ScrollBox): number {
  return box.scrollHeight - box.clientHeight;
}
