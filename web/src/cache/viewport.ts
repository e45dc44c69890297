/**
 * Which part of a picture is seen, and how large: a point p of it is seen at scale · p + (x, y).
 *
 * Pure functions from one viewport to the next.
 */

import type { PlacedNode, TreeLayout } from "./tree_layout";

export interface Viewport {
  x: number;
  y: number;
  scale: number;
}

export interface Box {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

const minScale = 0.03;
const maxScale = 3;
/** Words are still readable; of a picture that needs less, the middle is shown, where its root is. */
const minFittingScale = 0.85;
export const margin = 28;

/** Return the viewport that shows the whole picture, or as much of it as can be read. */
export function fit(picture: Box, box: Box): Viewport {
  const horizontal = (box.width - 2 * margin) / Math.max(1, picture.width);
  const vertical = (box.height - 2 * margin) / Math.max(1, picture.height);
  const scale = Math.min(1, Math.max(minFittingScale, Math.min(horizontal, vertical)));
  const spare = box.height - picture.height * scale;
  return { x: margin, y: spare / 2, scale };
}

/** Return the viewport after zooming in or out around a point of the screen. */
export function zoomAt(view: Viewport, factor: number, at: Point): Viewport {
  const scale = Math.min(maxScale, Math.max(minScale, view.scale * factor));
  const change = scale / view.scale;
  return { x: at.x - (at.x - view.x) * change, y: at.y - (at.y - view.y) * change, scale };
}

export function panBy(view: Viewport, x: number, y: number): Viewport {
  return { ...view, x: view.x + x, y: view.y + y };
}

/** Return the viewport that shows a node, moved no further than needed. */
export function reveal(view: Viewport, placed: PlacedNode, box: Box): Viewport {
  const left = placed.x * view.scale + view.x;
  const top = placed.y * view.scale + view.y;
  const right = left + placed.width * view.scale;
  const bottom = top + placed.height * view.scale;
  return panBy(view, needed(left, right, box.width), needed(top, bottom, box.height));
}

/** Return the nodes that can be seen, with a column and a row around them. */
export function seenNodes(layout: TreeLayout, view: Viewport, box: Box, around: Box): PlacedNode[] {
  const left = -view.x / view.scale - around.width;
  const top = -view.y / view.scale - around.height;
  const right = (box.width - view.x) / view.scale;
  const bottom = (box.height - view.y) / view.scale + around.height;
  return layout.nodes.filter(
    ({ x, y, height }) => x >= left && x <= right && y + height >= top && y <= bottom,
  );
}

function needed(start: number, end: number, length: number): number {
  if (start < margin) return margin - start;
  return end > length - margin ? Math.max(margin - start, length - margin - end) : 0;
}
