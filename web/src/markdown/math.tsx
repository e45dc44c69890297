/**
 * Mathematics as MathML; as the text it was written as until the typesetter is there, and as code
 * where it cannot be read or is too long.
 */

import { useEffect, useMemo } from "preact/hooks";

import { LazyModule } from "../lazy_module";
import type { MathToken } from "./math_syntax";

const maxSourceLength = 10_000;

export const typesetter = new LazyModule(() => import("./mathml"));

export function MathView({ raw, source, isDisplay }: MathToken) {
  const { value: loaded } = typesetter.current;
  const isTooLong = source.length > maxSourceLength;
  useEffect(() => {
    if (!isTooLong) void typesetter.request();
  }, [isTooLong]);
  const math = useMemo(
    () => (loaded === null || isTooLong ? null : loaded.typeset(source, isDisplay)),
    [loaded, isTooLong, source, isDisplay],
  );
  const className = isDisplay ? "math display" : "math";
  if (math !== null) return <span class={className}>{math}</span>;
  const isSettled = loaded !== null || isTooLong;
  return isSettled ? <code>{raw}</code> : <span class={`${className} source`}>{raw}</span>;
}
