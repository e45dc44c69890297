/**
 * Which part of a picture is seen, and how large: a point p of it is seen at scale · p + (x, y).
 *
 * Pure functions from one viewport to the next.
 */

import { margin, minNamedScale } from "./label_size";
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

const maxScale = 3;

/**
 * Return the viewport that shows the whole picture, or as much of it as has names.
 *
 * Of a picture that would need a smaller scale, the middle is shown, where its root is.
 */
export function fit(picture: Box, box: Box): Viewport {
  const horizontal = (box.width - 2 * margin) / Math.max(1, picture.width);
  const vertical = (box.height - 2 * margin) / Math.max(1, picture.height);
  const scale = Math.min(1, Math.max(minNamedScale, Math.min(horizontal, vertical)));
  const spare = box.height - picture.height * scale;
  return { x: margin, y: spare / 2, scale };
}

/** Return the viewport no smaller than fitted, moved so that the picture stays in its box. */
export function bounded(view: Viewport, picture: Box, box: Box): Viewport {
  const least = fit(picture, box).scale;
  const scale = Math.min(maxScale, Math.max(least, view.scale));
  const x = within(view.x, picture.width * scale, box.width);
  const y = within(view.y, picture.height * scale, box.height);
  return { x, y, scale };
}

/** Return the viewport after zooming in or out around a point of the screen. */
export function zoomAt(view: Viewport, factor: number, at: Point, least: number): Viewport {
  const scale = Math.min(maxScale, Math.max(least, view.scale * factor));
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

/** Return where a length begins that fills its box, or is as a whole in it. */
function within(start: number, length: number, box: number): number {
  const other = box - margin - length;
  return Math.min(Math.max(start, Math.min(margin, other)), Math.max(margin, other));
}

function needed(start: number, end: number, length: number): number {
  if (start < margin) return margin - start;
  return end > length - margin ? Math.max(margin - start, length - margin - end) : 0;
}
