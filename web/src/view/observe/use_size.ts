/** The size of an element, kept up to date; until it is known, that of a usual window. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Box } from "../../cache/viewport";

export function useSize(element: { readonly current: Element | null }): ReadonlySignal<Box> {
  const size = useSignal<Box>({ width: 800, height: 360 });
  useEffect(() => {
    if (element.current === null) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry === undefined) return;
      const { width, height } = entry.contentRect;
      size.value = { width: Math.floor(width), height: Math.floor(height) };
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return size;
}
