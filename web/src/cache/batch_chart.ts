/**
 * The last minute of steps as stacked bars, with the length of the queue as a line over them.
 *
 * Pure geometry in units of the picture. A bar stands where its half second was, so that the
 * picture moves to the left while time goes on, also where nothing happened.
 */

import type { WireStepInterval } from "../wire/cache_snapshot";
import type { Box } from "./viewport";

export const windowS = 60;
const intervalS = 0.5;
const barGap = 1;

export const series = ["prefill", "decode", "cached"] as const;
export type Series = (typeof series)[number];

export interface Segment {
  series: Series;
  y: number;
  height: number;
}

export interface Bar {
  x: number;
  width: number;
  segments: Segment[];
}

export interface BatchChart {
  bars: Bar[];
  /** The line of the queue; empty while nobody waited. */
  queuePath: string;
  maxTokens: number;
  maxWaiting: number;
}

export type BatchTotals = Record<Series, number> & { maxWaiting: number };

export function chartOf(steps: readonly WireStepInterval[], nowS: number, box: Box): BatchChart {
  const recent = recentSteps(steps, nowS);
  const maxTokens = roundUp(Math.max(...recent.map(tokensOf), 10));
  const maxWaiting = Math.max(...recent.map(({ num_waiting }) => num_waiting), 0);
  const toX = (atS: number) => (box.width * (windowS - (nowS - atS))) / windowS;
  const width = Math.max(1, (box.width * intervalS) / windowS - barGap);
  const bars = recent.map((step) => {
    const x = Math.max(0, toX(step.at));
    const segments = stack(step, box.height / maxTokens, box.height);
    return { x, width: Math.min(width, box.width - x), segments };
  });
  return { bars, queuePath: queueLine(recent, toX, box, maxWaiting), maxTokens, maxWaiting };
}

/** Return the bars of one series as a single shape: hundreds of them move with every snapshot. */
export function shapeOf(bars: readonly Bar[], name: Series): string {
  return bars
    .flatMap(({ x, width, segments }) =>
      segments
        .filter((segment) => segment.series === name)
        .map(({ y, height }) => `M${x} ${y}h${width}v${height}h${-width}z`),
    )
    .join("");
}

export function totalsOf(steps: readonly WireStepInterval[], nowS: number): BatchTotals {
  const totals = { prefill: 0, decode: 0, cached: 0, maxWaiting: 0 };
  for (const step of recentSteps(steps, nowS)) {
    for (const name of series) totals[name] += step[`${name}_tokens`];
    totals.maxWaiting = Math.max(totals.maxWaiting, step.num_waiting);
  }
  return totals;
}

/** Return the next of 1, 2, 5, 10, 20, 50, …: the top of an axis with even marks. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((each) => each * power >= value) ?? 10;
  return factor * power;
}

function recentSteps(steps: readonly WireStepInterval[], nowS: number): WireStepInterval[] {
  return steps.filter(({ at }) => at > nowS - windowS - intervalS && at <= nowS);
}

function tokensOf(step: WireStepInterval): number {
  return series.reduce((sum, name) => sum + step[`${name}_tokens`], 0);
}

function stack(step: WireStepInterval, pixelsPerToken: number, bottom: number): Segment[] {
  const segments: Segment[] = [];
  let y = bottom;
  for (const name of series) {
    const height = step[`${name}_tokens`] * pixelsPerToken;
    y -= height;
    if (height > 0) segments.push({ series: name, y, height });
  }
  return segments;
}

/** A queue that is not told of is empty. */
function queueLine(
  recent: readonly WireStepInterval[],
  toX: (atS: number) => number,
  box: Box,
  maxWaiting: number,
): string {
  if (maxWaiting === 0) return "";
  const toY = (numWaiting: number) => box.height * (1 - numWaiting / roundUp(maxWaiting));
  let path = `M0 ${box.height}`;
  let endS = -Infinity;
  for (const { at, num_waiting } of recent) {
    if (at > endS + intervalS / 2) path += `V${box.height}`;
    endS = at + intervalS;
    path += `H${Math.max(0, toX(at))}V${toY(num_waiting)}H${Math.min(box.width, toX(endS))}`;
  }
  return `${path}V${box.height}H${box.width}`;
}
