/**
 * When code is coloured: once, after its fence has closed, while the page has nothing else to do.
 *
 * Owns the pieces of the last blocks that were coloured, so that a block which is drawn anew is
 * coloured from the start. Code that is long, in no language or in an unknown one stays plain, and
 * so does all code while the highlighter cannot be loaded.
 */

import { useEffect, useState } from "preact/hooks";

import type { CodePiece } from "./highlighter";
import { nextIdleTime } from "./idle";

interface Highlighted {
  readonly language: string;
  readonly code: string;
  readonly pieces: readonly CodePiece[];
}

const maxCodeLength = 50_000;
const maxRemembered = 64;
const remembered: Highlighted[] = [];

/** Return the coloured pieces of a code, or null while it is to be shown as it is. */
export function useHighlighting(
  language: string,
  code: string,
  isClosed: boolean,
): readonly CodePiece[] | null {
  const [highlighted, setHighlighted] = useState(() => recall(language, code));
  const isWanted = isClosed && language !== "" && code.length <= maxCodeLength;
  const isDone = highlighted?.code === code && highlighted.language === language;
  useEffect(() => {
    if (!isWanted || isDone) return undefined;
    return highlightWhenIdle(language, code, setHighlighted);
  }, [language, code, isWanted, isDone]);
  return isDone && isClosed ? highlighted.pieces : null;
}

/** Call `onDone` with the pieces, if there are any; return what calls it off. */
function highlightWhenIdle(
  language: string,
  code: string,
  onDone: (highlighted: Highlighted) => void,
): () => void {
  let isWanted = true;
  const run = async () => {
    const { grammarOf, loadGrammar, highlight } = await import("./highlighter");
    const grammar = grammarOf(language);
    if (grammar === null) return;
    await loadGrammar(grammar);
    await nextIdleTime();
    const pieces = isWanted ? highlight(code, grammar) : null;
    if (pieces !== null) onDone(remember({ language, code, pieces }));
  };
  // Without the network the code stays as it is; the next block asks again.
  run().catch(() => undefined);
  return () => void (isWanted = false);
}

function recall(language: string, code: string): Highlighted | null {
  return remembered.find((done) => done.code === code && done.language === language) ?? null;
}

function remember(highlighted: Highlighted): Highlighted {
  remembered.push(highlighted);
  if (remembered.length > maxRemembered) remembered.shift();
  return highlighted;
}
