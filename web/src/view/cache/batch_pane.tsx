/** The steps of the last minute: what was computed, what was not, and who waited. */

import "./batch.css";

import { useRef } from "preact/hooks";

import {
  chartOf,
  roundUp,
  series,
  shapeOf,
  totalsOf,
  windowS,
  type BatchChart,
  type BatchTotals,
} from "../../cache/batch_chart";
import type { Box } from "../../cache/viewport";
import { formatCount, plural, t } from "../../i18n/catalogue";
import type { WireCacheWorker } from "../../wire/cache_snapshot";
import { useSize } from "../observe/use_size";

const chartHeight = 150;
const labelRoom = { left: 52, right: 32, top: 12, bottom: 24 };
const timeMarks = [60, 45, 30, 15, 0];
const tokenMarks = [0, 0.5, 1];

export function BatchPane({ worker }: { worker: WireCacheWorker }) {
  const totals = totalsOf(worker.steps, worker.taken_at);
  return (
    <section class="pane" aria-labelledby="batch-heading">
      <div class="pane-head">
        <h2 id="batch-heading">{t("cache.batch")}</h2>
        <p>{summaryOf(totals)}</p>
      </div>
      <BatchPicture worker={worker} />
      <ul class="legend">
        {series.map((name) => (
          <li key={name}>
            <span class="swatch series-swatch" data-series={name} />
            {t(`cache.series.${name}`)}
          </li>
        ))}
        <li>
          <span class="swatch queue-swatch" />
          {t("cache.series.queue")}
        </li>
      </ul>
    </section>
  );
}

/** The picture says no more than the sentence above it, which screen readers read. */
function BatchPicture({ worker }: { worker: WireCacheWorker }) {
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useSize(frame).value;
  const box = {
    width: Math.max(1, width - labelRoom.left - labelRoom.right),
    height: chartHeight,
  };
  const chart = chartOf(worker.steps, worker.taken_at, box);
  return (
    <div class="batch-picture" ref={frame} aria-hidden="true">
      <svg width={width} height={chartHeight + labelRoom.top + labelRoom.bottom}>
        <g transform={`translate(${labelRoom.left} ${labelRoom.top})`}>
          <Axes chart={chart} box={box} />
          {series.map((name) => (
            <path key={name} class="segments" data-series={name} d={shapeOf(chart.bars, name)} />
          ))}
          {chart.queuePath !== "" && <path class="queue" d={chart.queuePath} />}
        </g>
      </svg>
    </div>
  );
}

function Axes({ chart, box }: { chart: BatchChart; box: Box }) {
  return (
    <g class="axes">
      {tokenMarks.map((share) => {
        const y = box.height * (1 - share);
        return (
          <g key={share}>
            <path d={`M0 ${y}H${box.width}`} />
            <text class="left" x="-8" y={y}>
              {formatCount(chart.maxTokens * share)}
            </text>
          </g>
        );
      })}
      {chart.maxWaiting > 0 && (
        <text class="right" x={box.width + 8} y="0">
          {formatCount(roundUp(chart.maxWaiting))}
        </text>
      )}
      {timeMarks.map((seconds) => (
        <text
          key={seconds}
          class="time"
          x={box.width * (1 - seconds / windowS)}
          y={box.height + 16}
        >
          {seconds === 0 ? t("cache.now") : t("cache.secondsAgo", { seconds })}
        </text>
      ))}
    </g>
  );
}

function summaryOf({ prefill, decode, cached, maxWaiting }: BatchTotals): string {
  if (prefill + decode + cached + maxWaiting === 0) return t("cache.batchIdle");
  const tokens = t("cache.batchSummary", {
    prefill: formatCount(prefill),
    decode: formatCount(decode),
    cached: formatCount(cached),
  });
  return maxWaiting === 0 ? tokens : `${tokens} ${plural("cache.batchQueue", maxWaiting)}`;
}
