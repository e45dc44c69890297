/**
 * Mathematics as MathML; as the text it was written as until the typesetter is there, and as code
 * where it cannot be read or is too long.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { LazyModule } from "../lazy_module";
import type { MathToken } from "./math_syntax";
import { Turns } from "./turns";

const maxSourceLength = 10_000;
/** A formula takes up to some milliseconds, and a page of a thousand would stand still for all. */
export const maxTypesetAtOnce = 30;

const turns = new Turns(maxTypesetAtOnce);

export const typesetter = new LazyModule(() => import("./mathml"));

export function MathView({ raw, source, isDisplay }: MathToken) {
  const { value: loaded } = typesetter.current;
  const isTooLong = source.length > maxSourceLength;
  useEffect(() => {
    if (!isTooLong) void typesetter.request();
  }, [isTooLong]);
  const isTurn = useTurn(loaded !== null && !isTooLong);
  const math = useMemo(
    () => (loaded === null || !isTurn ? null : loaded.typeset(source, isDisplay)),
    [loaded, isTurn, source, isDisplay],
  );
  const className = isDisplay ? "math display" : "math";
  if (math !== null) return <span class={className}>{math}</span>;
  const isSettled = isTurn || isTooLong;
  return isSettled ? <code>{raw}</code> : <span class={`${className} source`}>{raw}</span>;
}

/** Return whether the formula may be typeset; the component is drawn again when it may. */
function useTurn(isWanted: boolean): boolean {
  const isTaken = useRef(false);
  const [, drawAgain] = useState(0);
  if (isWanted && !isTaken.current) isTaken.current = turns.tryTake();
  const isWaiting = isWanted && !isTaken.current;
  useEffect(() => {
    if (!isWaiting) return undefined;
    return turns.wait(() => {
      isTaken.current = true;
      drawAgain((count) => count + 1);
    });
  }, [isWaiting]);
  return isTaken.current;
}
