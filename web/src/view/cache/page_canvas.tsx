/**
 * The squares of all pages, painted anew with each snapshot.
 *
 * Their colours are those of the legend, as the browser computed them: style sheets own them, and a
 * change of theme is seen with the next snapshot.
 */

import { useEffect, useRef } from "preact/hooks";

import { placesOf, type DrawnPages } from "../../cache/drawn_pages";
import { paintPages, type PageColours } from "../../cache/page_grid";
import type { PageCounts } from "../../cache/page_states";
import { countsInWords } from "../../cache/page_words";
import { t } from "../../i18n/catalogue";
import type { WireCacheWorker } from "../../wire/cache_snapshot";

interface PageCanvasProps {
  worker: WireCacheWorker;
  counts: PageCounts;
  drawn: DrawnPages;
  pixelRatio: number;
  legend: { readonly current: Element | null };
}

export function PageCanvas({ worker, counts, drawn, pixelRatio, legend }: PageCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { grid, states } = drawn;
  const width = grid.columns * grid.cell;
  const height = grid.rows * grid.cell;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context == null || legend.current === null || height === 0) return;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const copied = placesOf(drawn, worker.copied_pages);
    paintPages(pixels, grid, states, copied, coloursOf(legend.current));
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
