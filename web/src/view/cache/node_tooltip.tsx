/** What is told of the node under the pointer or the focus; screen readers have it as its name. */

import { linesOf } from "../../cache/node_words";
import type { PlacedNode } from "../../cache/tree_layout";
import type { Box, Viewport } from "../../cache/viewport";
import { NodeHead } from "./node_head";

const width = 280;
const height = 190;
const gap = 10;
const edge = 8;

interface NodeTooltipProps {
  placed: PlacedNode;
  view: Viewport;
  box: Box;
}

export function NodeTooltip({ placed, view, box }: NodeTooltipProps) {
  const left = placed.x * view.scale + view.x;
  const top = placed.y * view.scale + view.y;
  const bottom = top + placed.height * view.scale;
  const isBelow = bottom + gap + height < box.height || top - gap < height;
  const place = {
    left: `${clamp(left, edge, box.width - width - edge)}px`,
    ...(isBelow
      ? { top: `${clamp(bottom + gap, edge, box.height - height)}px` }
      : { bottom: `${box.height - top + gap}px` }),
  };
  return (
    <div class="node-tooltip" style={place} aria-hidden="true">
      <p class="head" dir="auto">
        <NodeHead node={placed.node} />
      </p>
      {linesOf(placed.node).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(value, max));
}
