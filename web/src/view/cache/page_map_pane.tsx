/** The pool of pages, and the pages of one running request in it. */

import "./page_map.css";

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import type { CacheWatch } from "../../cache/cache_watch";
import { drawnPages, pageAtPlace, type DrawnPages } from "../../cache/drawn_pages";
import { placeAt } from "../../cache/page_grid";
import { countPages, type PageCounts } from "../../cache/page_states";
import { stripOf } from "../../cache/page_strip";
import { pageWords } from "../../cache/page_words";
import { plural, t } from "../../i18n/catalogue";
import type { WireCacheWorker } from "../../wire/cache_snapshot";
import { useSize } from "../observe/use_size";
import { PageCanvas } from "./page_canvas";
import { PageLegend } from "./page_legend";
import { PageStripLines } from "./page_strip_lines";
import { RunningRequests } from "./running_requests";

const gridHeight = 260;

interface PageMapProps {
  watch: CacheWatch;
  worker: WireCacheWorker;
}

export function PageMapPane({ watch, worker }: PageMapProps) {
  const legend = useRef<HTMLUListElement>(null);
  const counts = countPages(worker);
  return (
    <section class="pane" aria-labelledby="pages-heading">
      <div class="pane-head">
        <h2 id="pages-heading">{t("cache.pages")}</h2>
        <p>{plural("cache.poolSize", worker.num_pages, { size: worker.page_size })}</p>
      </div>
      <PageMap watch={watch} worker={worker} counts={counts} legend={legend} />
      <PageLegend view={watch.view.value} counts={counts} list={legend} />
      <RunningRequests watch={watch} worker={worker} />
    </section>
  );
}

interface PageMapPictureProps extends PageMapProps {
  counts: PageCounts;
  legend: { readonly current: Element | null };
}

function PageMap({ watch, worker, counts, legend }: PageMapPictureProps) {
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useSize(frame).value;
  const pointed = useSignal<number | null>(null);
  const ratio = globalThis.devicePixelRatio ?? 1;
  const drawn = drawnPages(worker, Math.floor(width * ratio), gridHeight * ratio, ratio);
  const { grid } = drawn;
  const request = watch.request.value;
  const strip = request === null ? null : stripOf(request.pages, width, drawn, ratio);
  const onPoint = (event: PointerEvent) => {
    const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
    const place = placeAt(grid, (event.clientX - left) * ratio, (event.clientY - top) * ratio);
    pointed.value = place === null ? null : pageAtPlace(drawn, place);
  };
  return (
    <div class="page-map" ref={frame}>
      {strip !== null && <div style={{ height: `${strip.height}px` }} />}
      <div
        class="page-grid"
        onPointerDown={onPoint}
        onPointerMove={onPoint}
        onPointerLeave={() => (pointed.value = null)}
      >
        <PageCanvas
          worker={worker}
          counts={counts}
          drawn={drawn}
          pixelRatio={ratio}
          legend={legend}
        />
      </div>
      {request !== null && strip !== null && (
        <PageStripLines
          strip={strip}
          width={width}
          height={strip.height + (grid.rows * grid.cell) / ratio}
          numCachedPages={Math.floor(request.num_cached_tokens / worker.page_size)}
          copiedPages={worker.copied_pages}
        />
      )}
      <Rest drawn={drawn} isTold={watch.view.value === "all"} />
      {strip !== null && <p class="map-note">{t("cache.stripMeans")}</p>}
      <p class="map-note" aria-hidden="true">
        {pointed.value === null ? t("cache.pointAtPage") : pageWords(worker, pointed.value)}
      </p>
    </div>
  );
}

/** The pages that are not drawn, in a number. */
function Rest({ drawn, isTold }: { drawn: DrawnPages; isTold: boolean }) {
  if (drawn.numLeft === 0) return null;
  const kind = isTold ? "free" : "hidden";
  return (
    <p class="page-rest">
      <span class="swatch page-swatch" data-page={kind} />
      {plural(isTold ? "cache.restFree" : "cache.restHidden", drawn.numLeft)}
    </p>
  );
}
