/**
 * Whether a key means what it says or belongs to an input method.
 *
 * Chromium and Firefox report the Enter that commits a composition with `isComposing` or key code
 * 229 before `compositionend`. Safari fires `compositionend` first and then a keydown that looks
 * almost like any other, so an Enter within a moment of the end is taken for the commit.
 */

const commitWindowMs = 60;
const composingKeyCode = 229;

export interface ComposingKey {
  isComposing: boolean;
  keyCode: number;
}

export interface EnterKey extends ComposingKey {
  key: string;
  shiftKey: boolean;
  timeStamp: number;
}

/** Return whether an input method has taken the key. */
export function isComposing(event: ComposingKey): boolean {
  return event.isComposing || event.keyCode === composingKeyCode;
}

export class EnterGuard {
  #endedAt = Number.NEGATIVE_INFINITY;

  onCompositionEnd(timeStamp: number): void {
    this.#endedAt = timeStamp;
  }

  /** Return whether the key sends what was written. */
  isSend(event: EnterKey): boolean {
    return event.key === "Enter" && !event.shiftKey && !this.#isCommit(event);
  }

  /** Keep a form from being sent by an Enter that commits a composition. */
  holdBack(event: EnterKey & { preventDefault(): void }): void {
    if (event.key === "Enter" && this.#isCommit(event)) event.preventDefault();
  }

  #isCommit(event: EnterKey): boolean {
    return isComposing(event) || event.timeStamp - this.#endedAt <= commitWindowMs;
  }
}
