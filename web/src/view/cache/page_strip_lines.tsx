/** A request's logical pages in order, each with a line to its physical page. */

import { lineOf, type PageStrip, type StripBox } from "../../cache/page_strip";
import { formatCount, t } from "../../i18n/catalogue";

interface PageStripLinesProps {
  strip: PageStrip;
  width: number;
  height: number;
  /** So many pages at the beginning were found in the cache. */
  numCachedPages: number;
  copiedPages: readonly number[];
}

export function PageStripLines(props: PageStripLinesProps) {
  const { strip, width, height, numCachedPages, copiedPages } = props;
  return (
    <svg
      class="page-strip"
      data-dense={!strip.isNumbered}
      width={width}
      height={height}
      role="img"
      aria-label={labelOf(strip)}
    >
      {strip.boxes.map((box) => (
        <g
          key={box.index}
          class="logical-page"
          data-origin={originOf(box, numCachedPages, copiedPages)}
        >
          <title>
            {t("cache.logicalPage", {
              logical: formatCount(box.index),
              physical: formatCount(box.pageId),
            })}
          </title>
          <path class="line" d={lineOf(box, strip.side)} />
          <Target box={box} />
          <rect
            class="box"
            x={box.x + 0.5}
            y={box.y + 0.5}
            width={strip.side - 1}
            height={strip.side - 1}
            rx="3"
          />
          {strip.isNumbered && (
            <text x={box.x + strip.side / 2} y={box.y + strip.side / 2}>
              {box.index}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

function originOf(
  { index, pageId }: StripBox,
  numCachedPages: number,
  copiedPages: readonly number[],
): "copied" | "cached" | "computed" {
  if (copiedPages.includes(pageId)) return "copied";
  return index < numCachedPages ? "cached" : "computed";
}

function Target({ box: { target } }: { box: StripBox }) {
  const { x, y, side } = target;
  return <rect class="target" x={x - 1} y={y - 1} width={side + 2} height={side + 2} />;
}

function labelOf({ boxes }: PageStrip): string {
  return t("cache.stripLabel", { pages: boxes.map(({ pageId }) => pageId).join(", ") });
}
