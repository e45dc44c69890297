/**
 * Whether an Enter means "send" or belongs to an input method.
 *
 * Chromium and Firefox report the Enter that commits a composition with `isComposing` or key code
 * 229 before `compositionend`. Safari fires `compositionend` first and then a keydown that looks
 * almost like any other, so an Enter within a moment of the end is taken for the commit.
 */

const commitWindowMs = 60;
const composingKeyCode = 229;

export interface EnterKey {
  key: string;
  shiftKey: boolean;
  isComposing: boolean;
  keyCode: number;
  timeStamp: number;
}

export class EnterGuard {
  #endedAt = Number.NEGATIVE_INFINITY;

  onCompositionEnd(timeStamp: number): void {
    this.#endedAt = timeStamp;
  }

  /** Return whether the key sends the message. */
  isSend(event: EnterKey): boolean {
    if (event.key !== "Enter" || event.shiftKey) return false;
    if (event.isComposing || event.keyCode === composingKeyCode) return false;
    return event.timeStamp - this.#endedAt > commitWindowMs;
  }
}
