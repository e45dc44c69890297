/**
 * The squares of all pages, painted anew with each snapshot.
 *
 * Their colours are those of the legend, as the browser computed them: style sheets own them, and a
 * change of theme is seen with the next snapshot.
 */

import { useEffect, useRef } from "preact/hooks";

import { paintPages, type PageColours, type PageGrid } from "../../cache/page_grid";
import type { PageCounts } from "../../cache/page_states";
import { countsInWords } from "../../cache/page_words";
import { t } from "../../i18n/catalogue";
import type { WireCacheWorker } from "../../wire/cache_snapshot";

interface PageCanvasProps {
  worker: WireCacheWorker;
  counts: PageCounts;
  grid: PageGrid;
  pixelRatio: number;
  legend: { readonly current: Element | null };
}

export function PageCanvas({ worker, counts, grid, pixelRatio, legend }: PageCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = grid.columns * grid.cell;
  const height = grid.rows * grid.cell;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context == null || legend.current === null) return;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    paintPages(pixels, grid, worker.pages, worker.copied_pages, coloursOf(legend.current));
    context.putImageData(image, 0, 0);
  }, [worker, width, height]);
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={t("cache.pagesLabel", { counts: countsInWords(counts) })}
      width={width}
      height={height}
      style={{ width: `${width / pixelRatio}px`, height: `${height / pixelRatio}px` }}
    />
  );
}

function coloursOf(legend: Element): PageColours {
  const swatches = [...legend.querySelectorAll<HTMLElement>("[data-page]")];
  const colours = swatches.map((swatch) => [
    swatch.dataset["page"],
    toPixel(getComputedStyle(swatch).backgroundColor),
  ]);
  return Object.fromEntries(colours) as PageColours;
}

/** Return `rgb(r, g, b)` as the bytes of a pixel, of which red is the lowest. */
function toPixel(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map(Number);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
