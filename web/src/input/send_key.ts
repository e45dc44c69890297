/**
 * Which Enter sends a message.
 *
 * Enter alone does where the reader wants it so and has keys to press; on a touch screen it makes a
 * line, since there is a button to send with. With Ctrl or Cmd it always sends.
 */

import type { EnterGuard, EnterKey } from "./enter_guard";

export interface SendKey extends EnterKey {
  ctrlKey: boolean;
  metaKey: boolean;
}

export function sends(event: SendKey, guard: EnterGuard, enterSends: boolean): boolean {
  return guard.isSend(event) && (enterSends || event.ctrlKey || event.metaKey);
}

/** Return whether the reader writes with a finger. */
export function isTouch(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}
