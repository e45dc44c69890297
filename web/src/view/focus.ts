/**
 * Where the focus goes when what had it has gone.
 *
 * Only ever after something the reader did; nothing that arrives moves it. Each of these waits for
 * the next frame, in which what was asked for stands on the page.
 */

import { useEffect, useRef } from "preact/hooks";

import { isTouch } from "../input/send_key";

/** Go on with the next message; on a touch screen that would bring up the keyboard unasked. */
export function focusComposer(): void {
  focusNext(isTouch() ? ".transcript" : "#composer");
}

export function focusSearch(): void {
  focusNext(".search-box input");
}

/** Stay with the message that has taken the place of another one. */
export function focusMessage(key: string): void {
  const message = `[data-key="${CSS.escape(key)}"]`;
  focusNext(`${message} .siblings button:enabled`);
}

/** Go back to the button that opened an editor, unless the focus has gone elsewhere. */
export function useFocusAfterEditing(
  isEditing: boolean,
  button: { readonly current: HTMLButtonElement | null },
): void {
  const wasEditing = useRef(isEditing);
  useEffect(() => {
    const hasFocus = document.activeElement !== document.body;
    if (wasEditing.current && !isEditing && !hasFocus) button.current?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
}

function focusNext(selector: string): void {
  requestAnimationFrame(() => {
    const element = document.querySelector<HTMLElement>(selector);
    element?.focus();
    if (element instanceof HTMLInputElement) element.select();
  });
}
