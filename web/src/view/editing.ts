/** Where the focus goes when the editor of a message closes and the message is there again. */

import { useEffect, useRef } from "preact/hooks";

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
