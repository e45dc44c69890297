/**
 * How much of a long text is drawn yet: a first piece at once, the rest in pieces while the page is
 * idle, as if the text were still being written.
 *
 * A text that grows by no more than a piece at a time is drawn whole each time.
 */

import { useEffect, useRef, useState } from "preact/hooks";

import { beginningOf } from "../characters";
import { nextIdleTime } from "./idle";

export const maxRevealedAtOnce = 8_000;

/** Return the beginning of a text that is to be drawn now; the component is drawn again for more. */
export function useRevealed(text: string): string {
  const drawn = useRef("");
  const [, drawAgain] = useState(0);
  const shown = nextBeginning(text, drawn.current);
  drawn.current = shown;
  useEffect(() => {
    if (shown.length === text.length) return undefined;
    let isWanted = true;
    void nextIdleTime().then(() => isWanted && drawAgain((count) => count + 1));
    return () => void (isWanted = false);
  }, [text, shown]);
  return shown;
}

/** Return a beginning of `text` that is not much longer than the one drawn before. */
export function nextBeginning(text: string, drawn: string): string {
  const start = text.slice(0, drawn.length) === drawn ? drawn.length : 0;
  const end = start + maxRevealedAtOnce;
  if (end >= text.length) return text;
  // At the end of a line nothing is shown that the next piece would take back.
  const lineEnd = text.lastIndexOf("\n", end - 1) + 1;
  return beginningOf(text, lineEnd > start ? lineEnd : end);
}
