/** Files dropped anywhere on the page, which the browser would otherwise open in its place. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/** Hand dropped files on; return whether some are being held over the page. */
export function useFileDrop(onFiles: (files: readonly File[]) => void): ReadonlySignal<boolean> {
  const isOver = useSignal(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const signals = new AbortController();
    const on = (type: "dragover" | "dragleave" | "drop", listener: (event: DragEvent) => void) =>
      document.addEventListener(type, listener, { signal: signals.signal });
    on("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      isOver.value = true;
    });
    on("dragleave", (event) => {
      if (event.relatedTarget === null) isOver.value = false;
    });
    on("drop", (event) => {
      isOver.value = false;
      if (!hasFiles(event)) return;
      event.preventDefault();
      latest.current([...(event.dataTransfer?.files ?? [])]);
    });
    return () => signals.abort();
  }, []);
  return isOver;
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes("Files") ?? false;
}
