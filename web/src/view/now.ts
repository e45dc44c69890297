/** The time, for what counts down to a moment. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const stepMs = 500;

/** Return the time, kept up with for as long as somebody counts. */
export function useNow(isCounting: boolean): number {
  const nowMs = useSignal(Date.now());
  useEffect(() => {
    nowMs.value = Date.now();
    if (!isCounting) return;
    const timer = setInterval(() => (nowMs.value = Date.now()), stepMs);
    return () => clearInterval(timer);
  }, [isCounting]);
  return nowMs.value;
}
